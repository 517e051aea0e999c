package run

import (
	"context"
	"regexp"
	"sync"

	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
)

// bringUp is machines that come up while others are still made.
type bringUp struct {
	states state.Store
	ids    map[string]int // of the VMs, by node
	made   map[string]func()
	isMade map[string]chan struct{}
	stop   func() // ends it, and waits for that

	mutex sync.Mutex // the note of unfinished VMs is one file
	done  chan struct{}
	err   error
}

func newMachines(states state.Store, ids map[string]int) *bringUp {
	b := &bringUp{states: states, ids: ids, made: map[string]func(){}, isMade: map[string]chan struct{}{}, done: make(chan struct{})}
	for node := range ids {
		made := make(chan struct{})
		b.isMade[node], b.made[node] = made, sync.OnceFunc(func() { close(made) })
	}
	return b
}

// bringUp brings machines up that are all made by an apply of the layer platform.
func (d *conductor) bringUp(ctx context.Context) *bringUp {
	ids := map[string]int{}
	for _, node := range d.Description.Nodes {
		ids[node.Name] = node.VMID
	}
	b := newMachines(d.StateFiles(d.access.Values), ids)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(b.done)
		machines := d.Hypervisor(d.access)
		defer machines.Close()
		_, b.err = talos.Up(ctx, d.Description, d.access.Bundle, talos.Options{Event: d.machine, Made: b.await, UUID: machines.UUID})
	}()
	b.stop = func() {
		cancel()
		<-b.done
	}
	return b
}

// madeLine is how OpenTofu tells that a machine is made: internal/command/views/hook_ui.go of OpenTofu v1.12.
var madeLine = regexp.MustCompile(`(?m)^([a-z_]+)\.([a-z]+)\["([^"]+)"\]: Creation complete after `)

// see looks in what the tools print for machines that are made.
func (b *bringUp) see(message string) {
	for _, match := range madeLine.FindAllStringSubmatch(message, -1) {
		if made, is := b.made[match[3]]; is && state.IsMachine(match[1], match[2]) {
			made()
		}
	}
}

// wait waits for the end of it, when all machines are made.
func (b *bringUp) wait() error {
	for _, made := range b.made {
		made()
	}
	<-b.done
	return b.err
}

// await waits until a node's machine is made. From then on it holds data, and is no leftover any more.
func (b *bringUp) await(ctx context.Context, node string) error {
	select {
	case <-b.isMade[node]:
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.states.ForgetUnfinishedVM(ctx, b.ids[node])
}
