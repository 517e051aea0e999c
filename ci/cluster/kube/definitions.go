package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// nudged is the annotation that a CRD has for a moment.
const nudged = "castle.tazlab.net/nudged"

// nudgePatience is how long an API server may take to establish a CRD whose names it has accepted. It takes its time where it is one of several: 5 s.
const nudgePatience = 10 * time.Second

// Definitions waits until each of the named CRDs is Established, and nudges those that an API server has left lying. It queues a CRD to be
// established when it sees a change of one whose names are accepted, whatever has changed, and not when it lists one: after an API server was ended
// between the two steps, that is when its informers resync, up to five minutes later (k8s.io/apiextensions-apiserver v0.36,
// updateCustomResourceDefinition in pkg/apiserver/customresource_handler.go, and New in pkg/apiserver/apiserver.go).
func (c *Client) Definitions(names ...string) WaitFunc {
	return func(ctx context.Context, report func(string)) error {
		return c.nudging(ctx, func(ctx context.Context, n *nudge) error {
			return c.Objects(CRDs, "", n.established, names...)(ctx, report)
		})
	}
}

// NudgeDefinitions nudges whatever CRD is left lying until the context ends. It is for CRDs that somebody else waits for, as Helm does for those that
// a chart brings: for a minute.
func (c *Client) NudgeDefinitions(ctx context.Context) {
	_ = c.nudging(ctx, func(ctx context.Context, n *nudge) error {
		return c.Follow(ctx, []Target{{Resource: CRDs}}, func(view View) (string, bool, error) {
			for _, definition := range view[0] {
				n.established(definition)
			}
			return "", false, nil
		}, func(string) {})
	})
}

// nudging nudges beside a look at CRDs that tells of them.
func (c *Client) nudging(ctx context.Context, look func(context.Context, *nudge) error) error {
	n := &nudge{client: c, lying: map[string]time.Time{}, times: map[string]int{}, failed: map[string]error{}}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { n.run(ctx) })
	return look(ctx, n)
}

// nudge is what one wait knows of CRDs whose names are accepted and that are not Established.
type nudge struct {
	client *Client

	mutex  sync.Mutex
	lying  map[string]time.Time // since when they were seen so, or nudged
	times  map[string]int
	failed map[string]error // the last try
}

// established is a Test that remembers what is lying.
func (n *nudge) established(definition *unstructured.Unstructured) (string, bool) {
	seen, ok := Established(definition)
	_, accepted := HasCondition(definition, "NamesAccepted")
	name := definition.GetName()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if ok || !accepted {
		delete(n.lying, name)
		return seen, ok
	}
	if _, known := n.lying[name]; !known {
		n.lying[name] = time.Now()
	}
	switch {
	case n.failed[name] != nil:
		seen += fmt.Sprintf("; it cannot be nudged: %v", Brief(n.failed[name]))
	case n.times[name] == 1:
		seen += "; the API server was nudged once"
	case n.times[name] > 1:
		seen += fmt.Sprintf("; the API server was nudged %d times", n.times[name])
	}
	return seen, ok
}

// run nudges what lies for too long until the context ends.
func (n *nudge) run(ctx context.Context) {
	ticker := time.NewTicker(n.client.NudgePatience / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, name := range n.due() {
			err := n.change(ctx, name)
			n.mutex.Lock()
			n.failed[name] = err
			n.mutex.Unlock()
		}
	}
}

// due are the CRDs whose turn it is.
func (n *nudge) due() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var names []string
	for name, since := range n.lying {
		if time.Since(since) >= n.client.NudgePatience {
			n.lying[name] = time.Now()
			n.times[name]++
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// change has the API server see the CRD change, and leaves it as it was: a patch that changes nothing is not stored, and nobody sees it. The second
// patch is sent whatever became of the first, which may be stored without an answer, and although the wait may end at the first.
func (n *nudge) change(ctx context.Context, name string) error {
	var failed []error
	for _, value := range []string{`"` + time.Now().UTC().Format(time.RFC3339) + `"`, "null"} {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
		_, err := n.client.Resource(CRDs).Patch(bounded, name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, nudged, value), metav1.PatchOptions{})
		cancel()
		failed = append(failed, err)
	}
	return cmp.Or(failed...)
}
