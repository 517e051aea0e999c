package layers

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Order says by name which layers are done before each one starts.
type Order map[string][]string

// ToApply is the order in which layers are made.
func ToApply() Order {
	order := Order{}
	for _, layer := range All {
		order[layer.Name] = layer.Needs
	}
	return order
}

// ToRemove is the order in which layers are removed: first what needs a layer, or waits for its objects.
func ToRemove() Order {
	order := Order{}
	for name, before := range Edges() {
		for _, one := range before {
			order[one] = append(order[one], name)
		}
	}
	return order
}

// Outcomes of a layer in which nothing was done.
var (
	ErrSkipped  = errors.New("a layer that it needs failed")
	ErrExcluded = errors.New("its unit excludes it") // which ejected ones may; the layers after it go on
)

// Outcome is what became of a layer: Err is nil, one of the above, or why it failed.
type Outcome struct {
	Layer Layer
	Err   error
}

// Failed tells whether it did.
func (o Outcome) Failed() bool {
	return o.Err != nil && !errors.Is(o.Err, ErrSkipped) && !errors.Is(o.Err, ErrExcluded)
}

// Walk does something for each of some layers: for one as soon as those before it are done, and at the same time for those that nothing
// orders. A layer that failed stops those after it, and no others. Once ctx has ended, none is begun. The outcomes come in the order in which
// they were known. A layer that is left out orders the others all the same.
func Walk(ctx context.Context, which []Layer, order Order, do func(context.Context, Layer) error) (outcomes []Outcome) {
	type place struct {
		done   chan struct{}
		failed bool // it, or one before it
	}
	places := map[string]*place{}
	for _, layer := range All {
		places[layer.Name] = &place{done: make(chan struct{})}
	}
	var mutex sync.Mutex
	var wait sync.WaitGroup
	for _, layer := range All {
		wait.Go(func() {
			here := places[layer.Name]
			defer close(here.done)
			for _, name := range order[layer.Name] {
				<-places[name].done
				here.failed = here.failed || places[name].failed
			}
			if !slices.ContainsFunc(which, func(one Layer) bool { return one.Name == layer.Name }) {
				return
			}
			err := ErrSkipped
			if !here.failed && ctx.Err() == nil {
				err = do(ctx, layer)
			}
			here.failed = err != nil && !errors.Is(err, ErrExcluded)
			mutex.Lock()
			defer mutex.Unlock()
			outcomes = append(outcomes, Outcome{layer, err})
		})
	}
	wait.Wait()
	return outcomes
}
