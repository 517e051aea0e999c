package gates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/kube"
)

const (
	// pullsEvery is how often the nodes' pulls are looked at.
	pullsEvery = 10 * time.Second
	// lookLimit bounds one look at them and at the nodes: an API whose machine has lost its power leaves requests without any answer, for a quarter
	// of an hour by TCP alone, and the deadline of the wait is not to wait for them.
	lookLimit = 10 * time.Second
	// patienceAtMost bounds a wait that images keep alive, as a multiple of its timeout.
	patienceAtMost = 6
	// pullsTold is how many pulls are told by name.
	pullsTold = 3
	// nodesTold is the same of nodes that are not ready.
	nodesTold = 2
)

// patience ends a wait when its timeout has gone by without an image that arrived or was begun with: over a slow way out five nodes
// pull for much longer than any fixed time, and a cluster that is given up then is not broken.
func (r *runner) patience(ctx context.Context, late func()) {
	moved, arrived := r.started, -1
	begun := map[string]bool{} // what is refused is begun with again and again
	deadline := time.NewTimer(r.options.Timeout)
	defer deadline.Stop()
	look := time.NewTicker(r.options.pullsEvery())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if r.options.Pulls == nil {
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, lookLimit)
			now, err := r.options.Pulls(bounded)
			notReady := r.notReady(bounded)
			cancel()
			if err != nil {
				continue // the conditions say what is wrong with the API
			}
			if now.Pulled > arrived && arrived >= 0 || slices.ContainsFunc(now.Going, func(one string) bool { return !begun[one] }) {
				moved = time.Now()
			}
			arrived = now.Pulled
			for _, one := range now.Going {
				begun[one] = true
			}
			r.tellBeside(now, notReady)
		case <-deadline.C:
			end := moved.Add(r.options.Timeout)
			if most := r.started.Add(patienceAtMost * r.options.Timeout); end.After(most) {
				end = most
			}
			left := time.Until(end)
			if left <= 0 {
				late()
				return
			}
			deadline.Reset(left)
		}
	}
}

// notReady are the nodes that are not, where they can be asked for.
func (r *runner) notReady(ctx context.Context) []string {
	if r.options.NotReady == nil {
		return nil
	}
	nodes, err := r.options.NotReady(ctx)
	if err != nil {
		return nil // the conditions say what is wrong with the API
	}
	return nodes
}

// tellBeside has each condition that is waited for say which nodes are not ready, what is being pulled, and what a registry does not give.
func (r *runner) tellBeside(now kube.Pulls, notReady []string) {
	texts := slices.Clone(notReady[:min(nodesTold, len(notReady))])
	if more := len(notReady) - nodesTold; more > 0 {
		texts[len(texts)-1] += fmt.Sprintf(" (and %d more)", more)
	}
	if len(now.Refused) > 0 {
		texts = append(texts, "cannot pull "+now.Refused[0])
		if more := len(now.Refused) - 1; more > 0 {
			texts[len(texts)-1] += fmt.Sprintf(" (and %d more)", more)
		}
	}
	if len(now.Going) > 0 {
		texts = append(texts, "pulling "+strings.Join(now.Going[:min(pullsTold, len(now.Going))], ", "))
		if more := len(now.Going) - pullsTold; more > 0 {
			texts[len(texts)-1] += fmt.Sprintf(" and %d more", more)
		}
	}
	text := strings.Join(texts, "; ")
	r.besideMutex.Lock()
	r.beside = text
	said := slices.Clone(r.onBeside)
	r.besideMutex.Unlock()
	for _, say := range said {
		say()
	}
}

// withBeside adds that to what a condition sees.
func (r *runner) withBeside(seen string) string {
	r.besideMutex.Lock()
	defer r.besideMutex.Unlock()
	if seen == "" || r.beside == "" {
		return seen + r.beside
	}
	return seen + "; " + r.beside
}
