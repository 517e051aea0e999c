package imagepush

import (
	"tazlab.net/castle/ci/base/registry/registrytest"
	"tazlab.net/castle/ci/base/retry"

	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAPassingMoodIsOutlasted(t *testing.T) {
	for _, c := range []struct {
		mood     registrytest.Mood
		times    int
		attempts int // at least
		atLeast  time.Duration
	}{
		{registrytest.ServerError, 2, 2, 0},
		{registrytest.CutConnection, 3, 2, 0},
		{registrytest.TooManyRequests, 1, 2, time.Second}, // Retry-After: 1
		{registrytest.Slow, 2, 1, 0},
	} {
		t.Run(string(c.mood), func(t *testing.T) {
			w := newWorld(t, registrytest.Fault{Mood: c.mood, Times: c.times, Delay: 20 * time.Millisecond})
			image := newImage(t)
			result := mustPush(t, w.options(newLayout(t, image), "v1"))
			if w.Met(c.mood) != c.times {
				t.Errorf("the mood was met %d times, want %d", w.Met(c.mood), c.times)
			}
			if result.Digest != digestOf(t, image) || result.Attempts < c.attempts || result.Duration < c.atLeast {
				t.Errorf("%+v", result)
			}
			w.mustHave(t, "v1", digestOf(t, image))
		})
	}
}

func TestARefusalEndsThePushAtOnce(t *testing.T) {
	for _, c := range []struct {
		mood   registrytest.Mood
		status int
	}{{registrytest.Unauthorized, 401}, {registrytest.Forbidden, 403}} {
		t.Run(string(c.mood), func(t *testing.T) {
			w := newWorld(t, registrytest.Fault{Mood: c.mood, Times: -1})
			_, err := Push(t.Context(), w.options(newLayout(t, newImage(t)), "v1"))
			var refused *AuthError
			if !errors.As(err, &refused) || refused.Status != c.status || refused.Anonymous {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{w.host(), "user name", "token", "team/blog"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
			if n := w.Met(c.mood); n > jobs+1 { // the blobs under way at once
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestWrongAndMissingCredentialsAreToldApart(t *testing.T) {
	w := newWorld(t)
	layout := newLayout(t, newImage(t))
	for _, c := range []struct {
		username, password string
		want               string
	}{{"", "", "no credentials were given"}, {username, "wrong", "check the user name and the token"}} {
		o := w.options(layout, "v1")
		o.Username, o.Password = c.username, c.password
		_, err := Push(t.Context(), o)
		var refused *AuthError
		if !errors.As(err, &refused) || refused.Status != 401 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.username, err)
		}
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("requests that write: %v", writes)
	}
}

func TestARegistryThatStaysBrokenIsGivenUpAndHasNoTag(t *testing.T) {
	for _, mood := range []registrytest.Mood{registrytest.ServerError, registrytest.CutConnection} {
		t.Run(string(mood), func(t *testing.T) {
			w := newWorld(t, registrytest.Fault{Mood: mood, Times: -1})
			o := w.options(newLayout(t, newImage(t)), "v1")
			o.Tries = 3
			_, err := Push(t.Context(), o)
			var gone *UnavailableError
			if !errors.As(err, &gone) || gone.Attempts != 3 || !strings.Contains(gone.Doing, "blob sha256:") {
				t.Fatalf("got %v", err)
			}
			w.mustHave(t, "v1", "")
		})
	}
}

func TestTheWholePushHasADeadlineThatNamesTheLastFailure(t *testing.T) {
	w := newWorld(t, registrytest.Fault{Mood: registrytest.ServerError, Times: -1})
	o := w.options(newLayout(t, newImage(t)), "v1")
	o.Tries, o.Timeout, o.Pause = 1000, time.Second, 50*time.Millisecond
	start := time.Now()
	_, err := Push(t.Context(), o)
	var gone *UnavailableError
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "500") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestAConnectionThatHangsIsTriedAgain(t *testing.T) {
	w := newWorld(t, registrytest.Fault{Mood: registrytest.Slow, Times: 1, Delay: time.Hour, Match: func(r *http.Request) bool {
		return r.Method == http.MethodHead
	}})
	image := newImage(t)
	o := w.options(newLayout(t, image), "v1")
	o.Attempt = 500 * time.Millisecond
	if result := mustPush(t, o); result.Attempts < 2 {
		t.Errorf("%+v", result)
	}
}

func TestAPauseOfHoursIsAnErrorAndNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead {
			return false
		}
		rw.Header().Set("Retry-After", time.Now().Add(6*time.Hour).UTC().Format(http.TimeFormat))
		rw.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	_, err := Push(t.Context(), w.options(newLayout(t, newImage(t)), "v1"))
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Status != 429 || !strings.Contains(err.Error(), "come back in 5h59m") {
		t.Errorf("got %v", err)
	}
}

func TestACancelledPushEndsAtOnceWithItsCause(t *testing.T) {
	w := newWorld(t, registrytest.Fault{Mood: registrytest.ServerError, Times: -1})
	o := w.options(newLayout(t, newImage(t)), "v1")
	o.Pause, o.RetryFor = time.Hour, 3*time.Hour
	o.Timeout = o.RetryFor
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Push(retry.To(ctx, ending(cancel)), o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// ending ends a push when a repetition is said.
type ending context.CancelFunc

func (e ending) Write(line []byte) (int, error) {
	e()
	return len(line), nil
}

func TestAnUploadThatTheRegistryForgotStartsAnew(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	var lost atomic.Bool // blobs are uploaded at the same time
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/blobs/uploads/") || !lost.CompareAndSwap(false, true) {
			return false
		}
		rw.WriteHeader(http.StatusNotFound)
		fmt.Fprint(rw, `{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN","message":"blob upload unknown to registry"}]}`)
		return true
	}
	o := w.options(newLayout(t, image), "v1")
	if result := mustPush(t, o); result.Attempts != 2 || !lost.Load() {
		t.Errorf("%+v", result)
	}
}

func TestWhatARepetitionCannotMendIsNotRepeated(t *testing.T) {
	layout := newLayout(t, newImage(t))
	t.Run("400", func(t *testing.T) {
		w := newWorld(t)
		var refusals atomic.Int32
		w.before = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			refusals.Add(1)
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"errors":[{"code":"MANIFEST_INVALID","message":"this registry takes no such manifest"}]}`)
			return true
		}
		_, err := Push(t.Context(), w.options(layout, "v1"))
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Status != 400 || refusals.Load() != 1 || !strings.Contains(err.Error(), "takes no such manifest") {
			t.Errorf("after %d refusals: %v", refusals.Load(), err)
		}
	})
	t.Run("a certificate nobody trusts", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		defer server.Close()
		o := Options{Access: reroutedTo(server), Reference: "registry.example.org/blog:v1", Layout: layout}
		_, err := Push(t.Context(), o)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Status != 0 || !strings.Contains(err.Error(), "x509") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("HTTP where HTTPS is expected", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		o := Options{Access: reroutedTo(server), Reference: "registry.example.org/blog:v1", Layout: layout}
		_, err := Push(t.Context(), o)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "plain HTTP") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a layout with a blob missing", func(t *testing.T) {
		w := newWorld(t)
		image := newImage(t)
		dir := newLayout(t, image)
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		digest, err := layers[1].Digest()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "blobs", "sha256", digest.Hex)); err != nil {
			t.Fatal(err)
		}
		_, err = Push(t.Context(), w.options(dir, "v1"))
		var gone *UnavailableError
		if err == nil || errors.As(err, &gone) || !strings.Contains(err.Error(), digest.Hex) {
			t.Errorf("got %v", err)
		}
	})
}

func reroutedTo(server *httptest.Server) Access {
	return Access{Transport: rerouted{&http.Transport{}, server.Listener.Addr().String()}}
}

// rerouted sends every request to one address, whatever host it names.
type rerouted struct {
	next    *http.Transport
	address string
}

func (r rerouted) RoundTrip(asked *http.Request) (*http.Response, error) {
	req := asked.Clone(asked.Context())
	req.Host = req.URL.Host
	req.URL.Host = r.address
	resp, err := r.next.RoundTrip(req)
	if resp != nil {
		resp.Request = asked // a place that is told without a host is at the one that was asked
	}
	return resp, err
}

// A registry that repeats the credentials in whatever it answers, as a proxy in debug mode does.
func TestCredentialsComeBackInNoErrorAndNoLog(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	for _, status := range []int{400, 401, 403, 404, 429, 500, 503} {
		for _, plain := range []bool{false, true} {
			w := newWorld(t)
			w.before = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				echo := r.Header.Get("Authorization") + " " + password + " " + url.QueryEscape(password)
				if status == 503 {
					rw.Header().Set("Retry-After", "0")
				}
				rw.WriteHeader(status)
				if plain {
					fmt.Fprint(rw, echo)
					return true
				}
				_ = json.NewEncoder(rw).Encode(map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": echo, "detail": echo}}})
				return true
			}
			o := w.options(newLayout(t, newImage(t)), "v1")
			o.Tries = 2
			var said strings.Builder
			_, err := Push(retry.To(t.Context(), &locked{to: &said}), o)
			if err == nil {
				t.Fatalf("%d: no error", status)
			}
			text := strings.Join([]string{said.String(), err.Error(), fmt.Sprintf("%+v %#v", err, err)}, "\n")
			for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
				text += fmt.Sprintf("\n%+v %#v", wrapped, wrapped)
			}
			for _, canary := range []string{password, pair, url.QueryEscape(password)} {
				if strings.Contains(text, canary) {
					t.Errorf("%d: %q is in:\n%s", status, canary, text)
				}
			}
		}
	}
}

// The way of Docker Hub: the registry sends to another server, which takes the credentials and gives a token.
func TestATokenIsFetchedWithTheCredentialsAndNeverShown(t *testing.T) {
	const token = "canary-t0ken"
	w := newWorld(t)
	tokens := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != username || p != password {
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(rw, `{"details":"incorrect username or password"}`)
			return
		}
		fmt.Fprintf(rw, `{"token":%q}`, token)
	}))
	defer tokens.Close()
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token {
			r.SetBasicAuth(username, password)
			return false
		}
		rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry"`, strings.Replace(tokens.URL, "127.0.0.1", "localhost", 1)))
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	}
	image := newImage(t)
	before := w.before
	mustPush(t, w.options(newLayout(t, image), "v1"))

	w.setBefore(func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") && r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(rw, `{"errors":[{"code":"DENIED","message":"requested access is denied"}]}`)
			return true
		}
		return before(rw, r)
	})
	_, err := Push(t.Context(), w.options(newLayout(t, newImage(t)), "v2"))
	var refused *AuthError
	if !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("got %v", err)
	}
	wrong := w.options(newLayout(t, image), "v3")
	wrong.Password = "wrong"
	_, wrongErr := Push(t.Context(), wrong)
	if !errors.As(wrongErr, &refused) || refused.Status != 401 {
		t.Errorf("got %v", wrongErr)
	}
	if text := err.Error() + wrongErr.Error(); strings.Contains(text, token) || strings.Contains(text, password) {
		t.Errorf("a secret is in:\n%s", text)
	}
}

func TestARegistryThatStaysBrokenIsGivenUpAfterTheTimeAndEachRepetitionIsSaid(t *testing.T) {
	w := newWorld(t, registrytest.Fault{Mood: registrytest.ServerError, Times: -1})
	o := w.options(newLayout(t, newImage(t)), "v1")
	o.Tries, o.Pause, o.RetryFor = 0, 50*time.Millisecond, 400*time.Millisecond
	var said strings.Builder
	began := time.Now()
	_, err := Push(retry.To(t.Context(), &locked{to: &said}), o)
	if unavailable, ok := errors.AsType[*UnavailableError](err); !ok || unavailable.Attempts < 2 || !strings.Contains(err.Error(), "--retry-for") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if !strings.Contains(said.String(), "failed at attempt 1: 500 Internal Server Error") || !strings.Contains(said.String(), "giving up at") {
		t.Errorf("said %q", said.String())
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	to io.Writer
}

func (l *locked) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}
