package gates

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Talos looks at the machines below Kubernetes.
type Talos interface {
	// EtcdQuorum says whether all declared control planes are healthy members of one etcd cluster with a leader. An
	// error is what kept it from knowing; it is asked again then.
	EtcdQuorum(ctx context.Context) (summary string, ok bool, err error)
}

// etcdQuorum waits for Talos to say so.
func etcdQuorum(talos Talos) Waiter {
	question := asking{every: 250 * time.Millisecond, limit: listTimeout, atOnce: 1}
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return question.ask(ctx, func(ctx context.Context) answer {
			summary, ok, err := talos.EtcdQuorum(ctx)
			if err != nil {
				return answer{seen: err.Error()}
			}
			return answer{seen: summary, ok: ok}
		}, report)
	})
}

// Steady waits until an address has answered Times times in a row, Every apart and over a new connection each, GET URL with
// status 200. A single answer is no proof: a virtual IP can be given up again right after it was taken.
type Steady struct {
	Kube  *Kube // its certificates and proxy
	URL   string
	Times int
	Every time.Duration
}

// Wait waits as Condition says.
func (s Steady) Wait(ctx context.Context, report func(string)) error {
	client, err := s.Kube.freshClient()
	if err != nil {
		return err
	}
	var row int
	var last string
	question := asking{every: s.Every, limit: 2 * time.Second, atOnce: 1, grace: s.Kube.grace}
	return question.ask(ctx, func(ctx context.Context) answer {
		failed, err := get(ctx, client, s.URL)
		if failed == "" {
			row++
		} else {
			row, last = 0, "; last failure "+failed
		}
		return answer{seen: fmt.Sprintf("%d of %d answers in a row%s", row, s.Times, last), ok: row >= s.Times, err: err}
	}, report)
}

// get says what is wrong with a URL's answer; nothing when it is 200. Of a readyz answer, that is the checks that failed.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error(), err
	}
	response, err := client.Do(request)
	if err != nil {
		return brief(err).Error(), err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	switch {
	case err != nil:
		return brief(err).Error(), err
	case response.StatusCode == http.StatusUnauthorized:
		return response.Status, unauthorized(url)
	case response.StatusCode != http.StatusOK:
		return strings.Join(append([]string{response.Status}, failedChecks(string(body))...), ", "), nil
	}
	return "", nil
}

// failedChecks picks the failing lines of a readyz answer: "[-]etcd failed: reason withheld".
func failedChecks(body string) []string {
	var failed []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			failed = append(failed, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), ": reason withheld")))
		}
	}
	return failed
}

// apiReady waits until the API server says that it is.
func (k *Kube) apiReady() Waiter {
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		client, err := k.freshClient()
		if err != nil {
			return err
		}
		question := asking{every: 250 * time.Millisecond, limit: listTimeout, atOnce: 1, grace: k.grace}
		return question.ask(ctx, func(ctx context.Context) answer {
			failed, err := get(ctx, client, strings.TrimSuffix(k.config.Host, "/")+"/readyz?verbose")
			if failed == "" {
				return answer{seen: "ready", ok: true}
			}
			return answer{seen: failed, err: err}
		}, report)
	})
}

// nodesReady waits until all nodes of these names are there and ready. All nodes are watched at once: a large cluster
// would else need a watch for each.
func (k *Kube) nodesReady(names []string) Waiter {
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return k.Follow(ctx, []Target{{Resource: nodes}}, func(view View) (string, bool, error) {
			byName := map[string]*unstructured.Unstructured{}
			for _, node := range view[0] {
				byName[node.GetName()] = node
			}
			var open []string
			for _, name := range names {
				seen, ok := "not registered yet", false
				if node := byName[name]; node != nil {
					seen, ok = nodeReady(node)
				}
				if !ok {
					open = append(open, name+": "+seen)
				}
			}
			return tally(len(names)-len(open), len(names), open), len(open) == 0, nil
		}, report)
	})
}
