package apiproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
)

// api is an API server that can be away: its address refuses then.
type api struct {
	t       *testing.T
	address string
	handler http.HandlerFunc

	mu     sync.Mutex
	server *httptest.Server // nil: away
}

func newAPI(t *testing.T, handler http.HandlerFunc) *api {
	t.Helper()
	a := &api{t: t, address: "127.0.0.1:0", handler: handler}
	a.back()
	t.Cleanup(a.away)
	return a
}

func (a *api) away() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.server.CloseClientConnections()
		a.server.Close()
	}
	a.server = nil
}

func (a *api) back() {
	a.mu.Lock()
	defer a.mu.Unlock()
	listener, err := net.Listen("tcp", a.address)
	if err != nil {
		a.t.Error(err)
		return
	}
	a.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: a.handler}}
	a.server.Start()
	a.address = listener.Addr().String()
}

// told are the calls of Waits and Over.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (s *told) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == 0 || s.lines[len(s.lines)-1] != line {
		s.lines = append(s.lines, line)
	}
}

func (s *told) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// start is a proxy before the API, and a client that was given its environment.
func start(t *testing.T, a *api, patience time.Duration) (*kube.Client, *Proxy, *told) {
	t.Helper()
	real, err := kube.Connect("http://"+a.address, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := &told{}
	proxy, err := Start(real, Options{Patience: patience, Waits: func(seen string) { said.add("waits: " + seen) }, Over: func(err error) {
		if err == nil {
			said.add("answers")
		} else {
			said.add("over: " + err.Error())
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	client, err := kube.FromEnv(func(name string) string { return proxy.values[name] })
	if err != nil {
		t.Fatal(err)
	}
	return client, proxy, said
}

func node(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}}
}

// echo answers a request with its own body, or an empty list.
func echo(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if request.Method != http.MethodGet {
		_, _ = io.Copy(w, request.Body)
		return
	}
	_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "NodeList", "items": []}`)
}

func TestARequestWaitsForAnAPIThatIsAway(t *testing.T) {
	a := newAPI(t, echo)
	client, _, said := start(t, a, time.Minute)
	if _, err := client.Resource(kube.Nodes).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	a.away()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := client.Resource(kube.Nodes).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	// A connection that nobody used may seem open for a moment yet, and what is sent by it may have been done. A look takes it out of the way.
	for said.all() == "" {
		time.Sleep(10 * time.Millisecond)
	}
	time.AfterFunc(time.Second, a.back)
	for range 4 {
		group.Go(func() {
			made, err := client.Resource(kube.Nodes).Create(t.Context(), node("n"), metav1.CreateOptions{})
			if err != nil || made.GetName() != "n" {
				t.Errorf("%v, %v", made, err)
			}
		})
	}
	group.Wait()
	if lines := said.all(); !strings.HasPrefix(lines, "waits: ") || !strings.Contains(lines, "connection refused") || !strings.HasSuffix(lines, "answers") {
		t.Errorf("it was told\n%s", lines)
	}
}

// What the API may have acted on is not asked for twice: what was made would be in its own way.
func TestWhatMayHaveBeenDoneIsNotSentAgain(t *testing.T) {
	var asked struct {
		sync.Mutex
		by map[string]int
	}
	asked.by = map[string]int{}
	a := newAPI(t, func(w http.ResponseWriter, request *http.Request) {
		asked.Lock()
		asked.by[request.Method]++
		first := asked.by[request.Method] == 1
		asked.Unlock()
		if first {
			_, _ = io.Copy(io.Discard, request.Body)
			panic(http.ErrAbortHandler)
		}
		echo(w, request)
	})
	client, _, _ := start(t, a, time.Minute)
	_, err := client.Resource(kube.Nodes).Create(t.Context(), node("n"), metav1.CreateOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "the API does not answer: ") {
		t.Errorf("what was made once, and the answer was lost: %v", err)
	}
	if _, err := client.Resource(kube.Nodes).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a look whose answer was lost: %v", err)
	}
	asked.Lock()
	defer asked.Unlock()
	if asked.by[http.MethodPost] != 1 || asked.by[http.MethodGet] != 2 {
		t.Errorf("the API was asked %v", asked.by)
	}
}

func TestAnAPIThatStaysAwayIsToldInItsOwnForm(t *testing.T) {
	a := newAPI(t, echo)
	client, _, said := start(t, a, 500*time.Millisecond)
	a.away()
	for range 2 { // the second at once
		_, err := client.Resource(kube.Nodes).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	}
	if lines := said.all(); strings.Count(lines, "over: ") != 1 || strings.Contains(lines, "answers") {
		t.Errorf("it was told\n%s", lines)
	}
}

func TestAWatchIsCarriedAsItComes(t *testing.T) {
	changes := make(chan string)
	a := newAPI(t, func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		for {
			select {
			case change := <-changes:
				_, _ = io.WriteString(w, change)
				w.(http.Flusher).Flush()
			case <-request.Context().Done():
				return
			}
		}
	})
	client, _, _ := start(t, a, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch, err := client.Resource(kube.Nodes).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for _, name := range []string{"one", "two"} {
		changes <- `{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "` + name + `"}}}` + "\n"
		select {
		case event := <-watch.ResultChan():
			if seen, ok := event.Object.(*unstructured.Unstructured); !ok || seen.GetName() != name {
				t.Errorf("got %+v", event)
			}
		case <-ctx.Done():
			t.Fatal("the change did not come")
		}
	}
}

func TestNobodyElseMayAsk(t *testing.T) {
	a := newAPI(t, func(http.ResponseWriter, *http.Request) { t.Error("the API was asked") })
	_, proxy, _ := start(t, a, time.Minute)
	client, err := kube.Connect(proxy.values[kube.HostVariable], []byte(proxy.values[kube.CAVariable]), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(kube.Nodes).List(t.Context(), metav1.ListOptions{}); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || errors.Is(err, context.Canceled) {
		t.Errorf("without the key: %v", err)
	}
}
