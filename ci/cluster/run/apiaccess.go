package run

import (
	"context"
	"sync"

	"tazlab.net/castle/ci/cluster/apiproxy"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// apiProxy is how the tools of the layers ask the API.
type apiProxy struct {
	*apiproxy.Proxy
	end    context.CancelFunc
	beside sync.WaitGroup
}

func (w *apiProxy) Close() {
	w.Proxy.Close()
	w.end()
	w.beside.Wait()
}

// apiForTools begins with one. What the tools wait for is told as a gate of the platform; and since an API server that ended leaves CRDs lying, of
// which Helm waits for its own, those are nudged afterwards.
func (c *Cluster) apiForTools(ctx context.Context, record *Record, access *Access) (*apiProxy, error) {
	api, err := access.API()
	if err != nil {
		return nil, err
	}
	tell := func(event timeline.Event) {
		event.Kind, event.Cluster, event.Layer, event.Name = timeline.KindGate, c.Description.Name, layers.Platform, "the API, for the tools"
		_ = record.Log.Append(event) // what cannot be told is waited for all the same
	}
	way := &apiProxy{}
	ctx, way.end = context.WithCancel(ctx)
	var nudging sync.Once
	last := "" // what was seen while something waits
	way.Proxy, err = apiproxy.Start(api, apiproxy.Options{
		Patience: kube.AwayAtMost,
		Waits: func(seen string) {
			if last == "" {
				tell(timeline.Event{Phase: timeline.PhaseStart})
			}
			if seen != last {
				tell(timeline.Event{Phase: timeline.PhaseWaiting, Cause: seen})
			}
			last = seen
		},
		Over: func(err error) {
			end := timeline.Event{Phase: timeline.PhaseEnd, Result: timeline.ResultOK}
			if err != nil {
				end.Result, end.Cause = timeline.ResultFailed, err.Error()
			}
			last = ""
			tell(end)
			nudging.Do(func() { way.beside.Go(func() { api.NudgeDefinitions(ctx) }) })
		},
	})
	if err != nil {
		way.end()
	}
	return way, err
}

// APIForPlans is how the tools ask the API where nothing is changed: a request that finds nobody fails at once. It is
// to be closed.
func (c *Cluster) APIForPlans(access *Access) (*apiproxy.Proxy, error) {
	api, err := access.API()
	if err != nil {
		return nil, err
	}
	return apiproxy.Start(api, apiproxy.Options{})
}
