package gates

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
)

// Talos looks at the machines below Kubernetes.
type Talos interface {
	// EtcdQuorum says whether all declared control planes are healthy members of one etcd cluster with a leader. An
	// error is what kept it from knowing; it is asked again then.
	EtcdQuorum(ctx context.Context) (summary string, ok bool, err error)
}

// etcdQuorum waits for Talos to say so.
func etcdQuorum(talos Talos) Waiter {
	question := kube.Poll{Every: 250 * time.Millisecond, Limit: kube.RequestTimeout}
	return kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		return question.Until(ctx, func(ctx context.Context) kube.Answer {
			summary, ok, err := talos.EtcdQuorum(ctx)
			if err != nil {
				return kube.Answer{Seen: err.Error()}
			}
			return kube.Answer{Seen: summary, OK: ok}
		}, report)
	})
}

// steady waits until the virtual IP and the API servers of all control planes have answered GET /readyz with status 200 at Times looks in
// a row, Every apart and over new connections. A single answer is no proof: a virtual IP can be given up again right after it was taken.
// Nor is the address alone: where the API server of its holder restarts, another one answers there at once, and one by one no
// condition would see that not all of them serve at the same time.
//
// Where all API servers have run for as long as Settled, and none of the looks failed, so much has been seen already by who used them:
// then steadyShort looks are enough.
type steady struct {
	Kube    *kube.Client // its certificates and proxy
	URL     string       // of the virtual IP
	Servers []apiServer
	Times   int
	Every   time.Duration
	Settled time.Duration
}

// steadyEvery is how often they are asked.
const steadyEvery = 250 * time.Millisecond

// steadyFor is how many looks in a row are owed. API servers of a young cluster restart within seconds, and each restart of the
// holder's moves the address: 15 s, but 2 s where time is a sandbox's, or somebody waits for an answer.
func steadyFor(e Env) int {
	if e.Scaled || e.LookOnly {
		return 8
	}
	return int(15 * time.Second / steadyEvery)
}

// steadyShort is how many looks in a row are enough where all API servers have settled.
const steadyShort = 3

// settledAfter is for how long API servers have to run to have settled: a minute, which is how long nobody may have the virtual IP after
// its holder's power was cut, so that no younger change of the holder hides. Where time is a sandbox's, it is shorter as the row is.
func settledAfter(e Env) time.Duration {
	if e.Scaled {
		return 8 * time.Second
	}
	return time.Minute
}

// apiServer is that of one control plane.
type apiServer struct{ node, url string }

func apiServersOf(cluster *config.Cluster) []apiServer {
	var list []apiServer
	for _, node := range cluster.ControlPlanes() {
		list = append(list, apiServer{node.Name, readyz(node.Address)})
	}
	return list
}

// apiPort is where API servers listen.
const apiPort = 6443

func readyz(address netip.Addr) string { return apiAt(address, "/readyz?verbose") }

func apiAt(address netip.Addr, path string) string {
	return "https://" + netip.AddrPortFrom(address, apiPort).String() + path
}

// Wait waits as Waiter says.
func (s steady) Wait(ctx context.Context, report func(string)) error {
	client, err := s.Kube.HTTPClient()
	if err != nil {
		return err
	}
	var row int
	var last string // why the row is not a short one
	question := s.Kube.Poll(s.Every)
	question.Limit = 2 * time.Second
	return question.Until(ctx, func(ctx context.Context) kube.Answer {
		failed, err := s.look(ctx, client)
		if failed == "" {
			row++
		} else {
			row, last = 0, "; last failure "+failed
		}
		if row == min(steadyShort, s.Times) && last == "" {
			settled, why := s.allSettled(ctx)
			if settled {
				return kube.Answer{Seen: fmt.Sprintf("%d answers in a row, and %s", row, why), OK: true}
			}
			last = "; " + why
		}
		return kube.Answer{Seen: fmt.Sprintf("%d of %d answers in a row%s", row, s.Times, last), OK: row >= s.Times, Err: err}
	}, report)
}

// look asks all at once and says what is wrong; the error is the virtual IP's.
func (s steady) look(ctx context.Context, client *http.Client) (failed string, err error) {
	servers := make([]string, len(s.Servers))
	var group sync.WaitGroup
	for i, server := range s.Servers {
		group.Go(func() { servers[i], _ = get(ctx, client, server.url) })
	}
	failed, err = get(ctx, client, s.URL)
	group.Wait()
	if failed != "" {
		return failed, err
	}
	var open []string
	for i, server := range s.Servers {
		if servers[i] != "" {
			open = append(open, server.node+": "+servers[i])
		}
	}
	if len(open) > 0 {
		failed = kube.Tally(len(servers)-len(open), len(servers), open)
	}
	return failed, nil
}

// get says what is wrong with a URL's answer; nothing when it is 200. Of a readyz answer, that is the checks that failed.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error(), err
	}
	response, err := client.Do(request)
	if err != nil {
		return kube.Brief(err).Error(), err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	switch {
	case err != nil:
		return kube.Brief(err).Error(), err
	case response.StatusCode == http.StatusUnauthorized:
		return response.Status, apierrors.NewUnauthorized("Unauthorized by " + url) // as the API's own clients say it
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
func apiReady(client *kube.Client) Waiter {
	return kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		fresh, err := client.HTTPClient()
		if err != nil {
			return err
		}
		return client.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
			failed, err := get(ctx, fresh, strings.TrimSuffix(client.Config().Host, "/")+"/readyz?verbose")
			if failed == "" {
				return kube.Answer{Seen: "ready", OK: true}
			}
			return kube.Answer{Seen: failed, Err: err}
		}, report)
	})
}

// nodesReady waits until all nodes of these names are there and ready. All nodes are watched at once: a large cluster
// would else need a watch for each.
func nodesReady(client *kube.Client, names []string) Waiter {
	return kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		return client.Follow(ctx, []kube.Target{{Resource: kube.Nodes}}, func(view kube.View) (string, bool, error) {
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
			return kube.Tally(len(names)-len(open), len(names), open), len(open) == 0, nil
		}, report)
	})
}

// dnsServes waits until a pod of CoreDNS is available: before, names are refused to whoever asks, and each tries again at a time of its own. Talos brings
// CoreDNS together with what makes nodes ready (internal/app/machined/pkg/controllers/k8s/manifest.go of v1.13), where its configuration does not disable it;
// nodes that are ready without it will have none.
func dnsServes(client *kube.Client, nodes Waiter) Waiter {
	return kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		if err := nodes.Wait(ctx, func(seen string) { report("nodes: " + seen) }); err != nil {
			return err
		}
		coreDNS := kube.Target{Resource: kube.Deployments, Namespace: metav1.NamespaceSystem, Name: "coredns"}
		return client.Follow(ctx, []kube.Target{coreDNS}, func(view kube.View) (string, bool, error) {
			seen, ok := coreDNSServes(view)
			return seen, ok, nil
		}, report)
	})
}

func coreDNSServes(view kube.View) (string, bool) {
	if len(view[0]) == 0 {
		return "no CoreDNS is brought", true
	}
	return kube.HasCondition(view[0][0], string(appsv1.DeploymentAvailable))
}
