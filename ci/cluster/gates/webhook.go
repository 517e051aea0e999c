package gates

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
)

// askEvery is the pace at which a webhook is called.
const askEvery = 100 * time.Millisecond

// probe is an object whose creation, as a server-side dry run, tells whether a webhook answers.
type probe struct {
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
	// RefusedBy names the webhook that must refuse the object: one that the API's own validation accepts, so that the
	// refusal proves that the webhook is registered, called and answering. Empty: the object must be accepted, as
	// the real one then will be.
	RefusedBy string
}

// webhook waits until a webhook's Service has a ready endpoint and all probes, in their order, are answered through it.
// The first alone says little: MetalLB and External Secrets Operator can be ready before they serve. Probes without a
// Service are for a webhook outside the cluster.
type webhook struct {
	Kube    *kube.Client
	Service kube.Object
	Probes  []probe
}

// Wait waits as Waiter says.
func (w webhook) Wait(ctx context.Context, report func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	poke := make(chan struct{}, 1)
	seen := &sightings{changed: poke, open: w.Service.Name == ""}
	failed := make(chan error, 1)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	if !seen.open {
		target := kube.Target{
			Resource:  kube.EndpointSlices,
			Namespace: w.Service.Namespace,
			Labels:    "kubernetes.io/service-name=" + w.Service.Name,
		}
		group.Go(func() {
			err := w.Kube.Follow(ctx, []kube.Target{target}, func(view kube.View) (string, bool, error) {
				text, ready := endpointsReady(view[0])
				seen.endpoints(text, ready)
				return text, false, nil
			}, seen.trouble)
			if ctx.Err() == nil {
				failed <- err
				cancel()
			}
		})
	}
	// A call to a webhook whose packets are lost hangs; another one starts every 300 ms even then.
	question := w.Kube.Poll(askEvery)
	question.Limit, question.AtOnce, question.Hurry = 3*time.Second, 10, poke
	err := question.Until(ctx, func(ctx context.Context) kube.Answer {
		text, open := seen.now()
		if !open {
			return kube.Answer{Seen: text}
		}
		result := w.callThrough(ctx)
		if text != "" {
			result.Seen = text + ", " + result.Seen
		}
		return result
	}, report)
	select {
	case fatal := <-failed:
		return fatal
	default:
		return err
	}
}

// sightings is what is known about the endpoints.
type sightings struct {
	changed chan struct{}

	mutex sync.Mutex
	text  string
	open  bool
}

func (s *sightings) endpoints(text string, ready bool) {
	s.mutex.Lock()
	opened := ready && !s.open
	s.text, s.open = text, ready
	s.mutex.Unlock()
	if opened {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// trouble is called with what Follow reports; the rule has stored its own findings already.
func (s *sightings) trouble(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if text != s.text {
		s.text, s.open = text, false
	}
}

func (s *sightings) now() (string, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text, s.open
}

// endpointsReady counts a Service's endpoints. An endpoint of unknown readiness counts as ready, as for kube-proxy.
func endpointsReady(slices []*unstructured.Unstructured) (string, bool) {
	if len(slices) == 0 {
		return "no EndpointSlice exists yet", false
	}
	var ready, all int
	for _, slice := range slices {
		endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
		for _, endpoint := range endpoints {
			endpoint, ok := endpoint.(map[string]any)
			if !ok {
				continue
			}
			all++
			if is, known, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); is || !known {
				ready++
			}
		}
	}
	return fmt.Sprintf("%d of %d endpoints ready", ready, all), ready > 0
}

// callThrough sends the probes until one is not answered as it should be.
func (w webhook) callThrough(ctx context.Context) kube.Answer {
	for _, probe := range w.Probes {
		client := w.Kube.Resource(probe.Resource).Namespace(probe.Object.GetNamespace())
		_, err := client.Create(ctx, probe.Object.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case probe.RefusedBy == "" && err == nil:
		case probe.RefusedBy != "" && kube.RefusedBy(err, probe.RefusedBy):
		case err == nil:
			return kube.Answer{Seen: "webhook " + probe.RefusedBy + " is not called yet"}
		case kube.IsUnknownKind(err):
			return w.Kube.UnknownKind(ctx, probe.Resource)
		default:
			return kube.Answer{Seen: "last error " + lastPart(err), Err: err}
		}
	}
	return kube.Answer{Seen: "answers", OK: true}
}

// callFailed is the API server's account of a webhook that it could not call, up to the cause.
var callFailed = regexp.MustCompile(`failed calling webhook "[^"]*": (?:failed to call webhook: )?(?:Post "[^"]*": )?`)

// lastPart leaves the cause of a failed call: "dial tcp 10.96.0.12:443: connect: connection refused".
func lastPart(err error) string {
	message := kube.Brief(err).Error()
	if at := callFailed.FindStringIndex(message); at != nil {
		return message[at[1]:]
	}
	return message
}
