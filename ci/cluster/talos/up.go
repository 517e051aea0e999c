package talos

import (
	"tazlab.net/castle/ci/cluster/talos/machineconfig"

	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/config"
)

// Steps that an Event can be about.
const (
	StepMachine   = "machine"   // one node, from its first answer to its configured API
	StepBootstrap = "bootstrap" // one call of etcd's bootstrap
	StepRejoin    = "rejoin"    // one control plane that was cut while it joined etcd
	StepEtcd      = "etcd"      // all control planes, until the member list is complete
)

// Phases and results of an Event, the same words as the event log's.
const (
	PhaseStart, PhaseWaiting, PhaseEnd      = "start", "waiting", "end"
	ResultOK, ResultFailed, ResultUnchanged = "ok", "failed", "unchanged"
	Configured, Reconfigured, UnchangedNode = "configured", "reconfigured", "unchanged"
	errorGrace                              = 2 * time.Second
	reapply                                 = 20 * time.Second
	connectionMemory                        = 2 * time.Second // ten times as long as until a connection is tried anew
	manyLooks                               = 5
)

// Event is something that happened in Up. "waiting" comes when what is waited for changes, not at every look.
type Event struct {
	Time   time.Time
	Step   string
	Node   string // "" where the step is about the cluster
	Phase  string
	Result string // with PhaseEnd
	Cause  string // what is waited for, or why it failed
}

// Report is what Up did.
type Report struct {
	Nodes      []NodeReport // in the order of the description
	Bootstraps int          // bootstrap calls that were accepted; 0 where etcd was already there
	Quorum     Quorum       // the observation that ended Up
}

// NodeReport is what Up did with one node.
type NodeReport struct {
	Name    string
	Address string
	Result  string        // Configured, Reconfigured or UnchangedNode; "" where it did not come so far
	Took    time.Duration // from Up's start
}

// Changed tells whether Up changed anything.
func (r Report) Changed() bool {
	for _, node := range r.Nodes {
		if node.Result == Configured || node.Result == Reconfigured {
			return true
		}
	}
	return r.Bootstraps > 0
}

// Up brings all nodes of a cluster to their configuration and etcd to its quorum, from wherever they are: booting, in
// maintenance mode, configured, or complete, where it changes nothing. It ends when etcd's own member list shows every
// control plane as a healthy voter under one leader and every node answers with its configuration, or with the errors of all
// nodes that cannot get there: GhostError, LateError, DriftError, SilentError (errors.As finds them). The Report tells how far it came.
func Up(ctx context.Context, c *config.Cluster, bundle *machineconfig.Bundle, options Options) (Report, error) {
	access, err := Dial(c, bundle, options)
	if err != nil {
		return Report{}, err
	}
	defer access.Close()
	return access.up(ctx, bundle)
}

// run is one Up.
type run struct {
	*Access
	configs map[string][]byte
	started time.Time
	search  func() []netip.Addr // of the subnet, made once

	mu         sync.Mutex
	progress   map[string]progress // by node
	bootstraps int
	quorum     Quorum
}

func (a *Access) up(ctx context.Context, bundle *machineconfig.Bundle) (Report, error) {
	configs, err := a.configs(bundle)
	if err != nil {
		return Report{}, err
	}
	if len(a.controlPlanes()) == 0 {
		return Report{}, fmt.Errorf("%s has no control plane: give a node the role %s", a.cluster.Name, config.RoleControlPlane)
	}
	r := &run{Access: a, configs: configs, started: time.Now(), progress: map[string]progress{}}
	r.search = sync.OnceValue(func() []netip.Addr { return r.strays(ctx) })
	err = r.all(ctx)
	return r.report(), err
}

// all runs every node and etcd's bootstrapper. The first error ends the others a little later, so that what else is wrong
// gets into the same error.
func (r *run) all(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	var (
		wait   sync.WaitGroup
		mu     sync.Mutex
		errs   []error
		ending sync.Once
	)
	start := func(work func(context.Context) error) {
		wait.Go(func() {
			err := work(ctx)
			if err == nil {
				return
			}
			ending.Do(func() {
				go func() {
					r.diagnoseAll(ctx)
					_ = pause(ctx, errorGrace)
					cancel()
				}()
			})
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) { // not merely ended by another's error
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, n := range r.nodes {
		start(func(ctx context.Context) error { return r.bring(ctx, n) })
	}
	start(r.form)
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return parent.Err()
}

// diagnoseAll waits until it is known of each machine that is still made whether something is wrong with it, within reason: what is wrong
// with one may be wrong with all.
func (r *run) diagnoseAll(ctx context.Context) {
	if r.options.Made == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.Silence)
	defer cancel()
	for slices.ContainsFunc(r.nodes, func(n *node) bool { return r.seen(n).stage <= machineBooting }) {
		if pause(ctx, r.options.Poll) != nil {
			return
		}
	}
}

// there tells that a node's machine is there.
func (r *run) there(n *node) bool { return r.options.Made == nil || r.seen(n).stage > machineUncreated }

// newborn tells that a machine cannot hold anything of this cluster that was there before this run.
func (r *run) newborn(n *node) bool { return r.options.Made != nil || r.seen(n).fresh }

func (r *run) report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{Bootstraps: r.bootstraps, Quorum: r.quorum}
	for _, n := range r.nodes {
		p := r.progress[n.Name]
		report.Nodes = append(report.Nodes, NodeReport{Name: n.Name, Address: n.Address.String(), Result: p.result, Took: p.took})
	}
	return report
}

// step tells of one step; waiting repeats nothing.
type step struct {
	run        *run
	name, node string
	last       string
}

func (r *run) begin(name, node string) *step {
	s := &step{run: r, name: name, node: node}
	s.tell(PhaseStart, "", "")
	return s
}

func (s *step) waiting(cause string) {
	if cause != s.last {
		s.last = cause
		s.tell(PhaseWaiting, "", cause)
	}
}

// end tells the result and hands the error on. A step that another's error ended is not told of.
func (s *step) end(result string, err error) error {
	switch {
	case err == nil:
		s.tell(PhaseEnd, result, "")
	case !errors.Is(err, context.Canceled):
		s.tell(PhaseEnd, ResultFailed, err.Error())
	}
	return err
}

func (s *step) tell(phase, result, cause string) {
	s.run.options.Event(Event{Time: time.Now(), Step: s.name, Node: s.node, Phase: phase, Result: result, Cause: cause})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
