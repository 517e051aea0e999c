package layers_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"tazlab.net/castle/ci/cluster/layers"
)

// walked is what a walk did: the layers in the order in which they began and ended, and the outcomes by name.
func walked(ctx context.Context, which []layers.Layer, order layers.Order, do func(layers.Layer) error) (seen []string, results map[string]error) {
	var mutex sync.Mutex
	note := func(what string) {
		mutex.Lock()
		defer mutex.Unlock()
		seen = append(seen, what)
	}
	results = map[string]error{}
	for _, outcome := range layers.Walk(ctx, which, order, func(_ context.Context, layer layers.Layer) error {
		note("start " + layer.Name)
		defer note("end " + layer.Name)
		return do(layer)
	}) {
		results[outcome.Layer.Name] = outcome.Err
	}
	return seen, results
}

func fine(layers.Layer) error { return nil }

func TestALayerStartsWhenThoseBeforeItHaveEnded(t *testing.T) {
	for name, order := range map[string]layers.Order{"apply": layers.ToApply(), "remove": layers.ToRemove()} {
		seen, results := walked(t.Context(), layers.All, order, fine)
		for _, layer := range layers.All {
			if err, did := results[layer.Name]; !did || err != nil {
				t.Errorf("%s: %s was done: %t, %v", name, layer.Name, did, err)
			}
			for _, before := range order[layer.Name] {
				if slices.Index(seen, "end "+before) > slices.Index(seen, "start "+layer.Name) {
					t.Errorf("%s: %s began before %s had ended: %v", name, layer.Name, before, seen)
				}
			}
		}
	}
}

// Flux is installed beside the engine, and its secrets are the engine's to remove.
func TestFluxGoesBeforeTheEngine(t *testing.T) {
	seen, _ := walked(t.Context(), layers.All, layers.ToRemove(), fine)
	if gone, begun := slices.Index(seen, "end gitops"), slices.Index(seen, "start engine"); gone < 0 || begun < gone {
		t.Errorf("the layers were removed in this order: %v", seen)
	}
}

func TestLayersThatNothingOrdersRunAtTheSameTime(t *testing.T) {
	var together sync.WaitGroup
	together.Add(4)
	_, results := walked(t.Context(), layers.All, layers.ToApply(), func(layer layers.Layer) error {
		if slices.Contains(layer.Needs, layers.Platform) {
			together.Done()
			together.Wait() // for ever, were they not
		}
		return nil
	})
	if len(results) != len(layers.All) {
		t.Errorf("only %v were done", results)
	}
}

func TestALayerThatFailsStopsThoseAfterItAndNoOthers(t *testing.T) {
	broken := errors.New("broken")
	_, results := walked(t.Context(), layers.All, layers.ToApply(), func(layer layers.Layer) error {
		if layer.Name == layers.Engine {
			return broken
		}
		return nil
	})
	for name, want := range map[string]error{layers.Engine: broken, layers.Networking: nil, layers.Storage: nil, layers.GitOps: nil} {
		if !errors.Is(results[name], want) {
			t.Errorf("%s: %v", name, results[name])
		}
	}
	_, results = walked(t.Context(), layers.All, layers.ToRemove(), func(layer layers.Layer) error {
		if layer.Name == layers.GitOps {
			return broken
		}
		return nil
	})
	for name, want := range map[string]error{layers.Engine: layers.ErrSkipped, layers.Platform: layers.ErrSkipped, layers.Secrets: layers.ErrSkipped, layers.Storage: nil} {
		if !errors.Is(results[name], want) {
			t.Errorf("on the way back, %s: %v", name, results[name])
		}
	}
}

func TestALayerWhoseUnitExcludesItStopsNoOther(t *testing.T) {
	_, results := walked(t.Context(), layers.All, layers.ToApply(), func(layer layers.Layer) error {
		if layer.Name == layers.Platform {
			return layers.ErrExcluded
		}
		return nil
	})
	if err, did := results[layers.GitOps]; !did || err != nil {
		t.Errorf("gitops was done: %t, %v", did, err)
	}
	for err, failed := range map[error]bool{nil: false, layers.ErrSkipped: false, layers.ErrExcluded: false, errors.New("broken"): true} {
		if got := (layers.Outcome{Err: err}).Failed(); got != failed {
			t.Errorf("%v is a failure: %t", err, got)
		}
	}
}

func TestALayerThatIsLeftOutOrdersTheOthers(t *testing.T) {
	which := []layers.Layer{layers.Named(layers.Secrets), layers.Named(layers.GitOps)}
	seen, _ := walked(t.Context(), which, layers.ToRemove(), fine)
	if want := []string{"start gitops", "end gitops", "start secrets", "end secrets"}; !slices.Equal(seen, want) {
		t.Errorf("it did %v", seen)
	}
}

func TestNoLayerBeginsOnceTheRunIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	_, results := walked(ctx, layers.All, layers.ToApply(), func(layer layers.Layer) error {
		if layer.Name == layers.Platform {
			interrupt()
		}
		return nil
	})
	for _, layer := range layers.InCluster() {
		if !errors.Is(results[layer.Name], layers.ErrSkipped) {
			t.Errorf("%s: %v", layer.Name, results[layer.Name])
		}
	}
}
