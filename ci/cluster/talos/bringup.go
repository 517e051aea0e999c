package talos

import (
	"context"
	"strings"
	"time"
)

// machineStage is where a machine is on its way to its configuration, in Talos's words (MachineStage in
// pkg/machinery/resources/runtime). A machine that is configured already goes from booting to running.
type machineStage int

const (
	machineUncreated   machineStage = iota // the hypervisor has not made it yet
	machineBooting                         // it has not answered
	machineMaintenance                     // it waits for a configuration
	machineInstalling                      // it accepted one, and installs
	machineRebooting                       // it was silent since
	machineRunning                         // it answers with the cluster's PKI
	machineFailed                          // waiting longer cannot help
)

// progress is how far a machine has come in this run.
type progress struct {
	stage  machineStage
	since  time.Time // of the stage
	fresh  bool      // it was in maintenance mode in this run
	result string
	took   time.Duration
}

func (r *run) seen(n *node) progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress[n.Name]
}

// enter notes that a machine is in a stage.
func (r *run) enter(n *node, stage machineStage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.progress[n.Name]
	if p.stage != stage {
		p.stage, p.since = stage, time.Now()
	}
	p.fresh = p.fresh || stage == machineMaintenance
	r.progress[n.Name] = p
}

// bring takes one node to its configuration, as soon as its machine is there.
func (r *run) bring(ctx context.Context, n *node) error {
	if r.options.Made != nil {
		if err := r.options.Made(ctx, n.Name); err != nil {
			return err
		}
	}
	r.enter(n, machineBooting)
	s := r.begin(StepMachine, n.Name)
	result, err := r.bringUp(n).configure(ctx, s)
	if err != nil {
		r.enter(n, machineFailed)
		return s.end("", err)
	}
	r.mu.Lock()
	p := r.progress[n.Name]
	p.result, p.took = result, time.Since(r.started)
	r.progress[n.Name] = p
	r.mu.Unlock()
	if result == UnchangedNode {
		return s.end(ResultUnchanged, nil)
	}
	return s.end(ResultOK, nil)
}

// bringUp takes one machine from stage to stage.
type bringUp struct {
	run  *run
	node *node

	began    time.Time
	answered time.Time // last time that anybody did at its address
	searched bool      // the subnet, for a machine at another address
	fits     bool      // it is the machine that is meant, and its template the one that is described
	other    streak    // looks at another machine than the one that is meant
}

func (r *run) bringUp(n *node) *bringUp {
	return &bringUp{run: r, node: n, began: time.Now(), answered: time.Now()}
}

// configure looks at the machine until it runs its configuration. It returns what was done for that.
func (b *bringUp) configure(ctx context.Context, s *step) (result string, err error) {
	if b.node.Fingerprint != "" {
		b.node.pin.want(b.node.Fingerprint, false)
	}
	for {
		found, why := b.node.look(ctx)
		result, waiting, err := b.next(ctx, found, why)
		if err != nil || result != "" {
			return result, err
		}
		s.waiting(brief(waiting))
		if time.Since(b.began) > b.run.options.NodeDeadline {
			return "", &SilentError{Node: b.node.Name, Address: b.node.Address, Waited: b.run.options.NodeDeadline.String(), Seen: waiting}
		}
		if err := pause(ctx, b.run.options.Poll); err != nil {
			return "", err
		}
	}
}

// next goes from one stage to the next by what a look found. It returns the result where the machine runs its configuration, else what is
// waited for.
func (b *bringUp) next(ctx context.Context, found presence, why error) (result, waiting string, err error) {
	if found != silent {
		b.answered = time.Now()
	}
	switch found {
	case configured:
		b.other = streak{}
		return b.isConfigured(ctx)
	case maintenance:
		b.other = streak{}
		waiting, err = b.inMaintenance(ctx)
	case foreign, stranger:
		waiting, err = b.isAnother(found, why)
	case silent:
		waiting, err = b.isSilent(ctx, why)
	}
	return "", waiting, err
}

// isConfigured leads to running, and ends there once the machine has the configuration that is described.
func (b *bringUp) isConfigured(ctx context.Context) (result, waiting string, err error) {
	before := b.run.seen(b.node)
	b.run.enter(b.node, machineRunning)
	if before.stage == machineInstalling || before.stage == machineRebooting {
		return Configured, "", nil
	}
	result, err = b.node.update(ctx, b.run.configs[b.node.Name])
	switch {
	case err == nil && before.fresh:
		return Configured, "", nil // it took the configuration, and the answer to that was lost
	case err == nil:
		return result, "", nil
	case passing(err) || between(err):
		return "", unwrapped(err), nil
	}
	return "", "", err
}

// inMaintenance leads to installing. A machine that installs is given time; one that falls back, as by a power cut while it installed, gets its
// configuration again.
func (b *bringUp) inMaintenance(ctx context.Context) (waiting string, err error) {
	if now := b.run.seen(b.node); now.stage == machineInstalling && time.Since(now.since) <= reapply {
		return "installing", nil
	}
	b.run.enter(b.node, machineMaintenance)
	if err := b.fitting(ctx); err != nil {
		if passing(err) || between(err) {
			return unwrapped(err), nil
		}
		return "", err
	}
	err = b.node.apply(ctx, b.run.configs[b.node.Name])
	switch {
	case err == nil:
		b.run.enter(b.node, machineInstalling)
		return "installing", nil
	case between(err):
		return "in maintenance mode: " + unwrapped(err), nil
	case passing(err):
		return "in maintenance mode", nil
	}
	return "", err
}

// isAnother fails where another machine than the one that is meant stays at the address. For a moment of its restart a machine can look
// like this, and until a connection is tried anew, what it looked like is what each call gets.
func (b *bringUp) isAnother(found presence, why error) (waiting string, err error) {
	n := b.node
	if found == foreign {
		if b.other.add(); b.other.lasts() {
			return "", &GhostError{Node: n.Name, Address: n.Address, Seen: why.Error()}
		}
		return why.Error(), nil
	}
	const waitsFor = "its certificate is another one"
	shown, wanted, learned, _ := n.pin.other()
	if learned { // it has restarted, or gone over to its configuration
		n.pin.want("", false)
		b.fits = false
		return waitsFor, nil
	}
	if b.other.add(); b.other.lasts() {
		return "", &FingerprintError{Node: n.Name, Address: n.Address, Shown: shown, Wanted: wanted}
	}
	return waitsFor, nil
}

// isSilent leads from installing to rebooting, and fails where the node's machine is found somewhere else. Proxmox cannot tell: it would have
// to ask an agent in the machine, and Talos comes without one.
func (b *bringUp) isSilent(ctx context.Context, why error) (waiting string, err error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if b.run.seen(b.node).stage == machineInstalling {
		b.run.enter(b.node, machineRebooting)
	}
	if time.Since(b.answered) > b.run.options.Silence && !b.searched {
		b.searched = true
		if live := b.run.search(); len(live) > 0 {
			return "", &DriftError{Node: b.node.Name, Declared: b.node.Address, Live: live}
		}
	}
	return unwrapped(why), nil
}

// fitting looks once whether a machine is the one that is meant, and its template the one that is described, before
// anything is applied to it.
func (b *bringUp) fitting(ctx context.Context) error {
	if b.fits {
		return nil
	}
	if err := b.run.identify(ctx, b.node); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := b.node.fits(ctx, b.run.cluster)
	b.fits = err == nil
	return err
}

// streak counts looks in a row that found the same trouble. One odd look can be a machine that restarts, or a member that is being replaced.
type streak struct {
	looks int
	since time.Time
}

func (s *streak) add() {
	if s.looks++; s.looks == 1 {
		s.since = time.Now()
	}
}

// many tells that it is no coincidence.
func (s streak) many() bool { return s.looks >= manyLooks }

// lasts tells the same of what a connection shows until it is tried anew.
func (s streak) lasts() bool { return s.many() && time.Since(s.since) > connectionMemory }

// brief keeps the part of an error that differs from one look to the next out of the events.
func brief(text string) string {
	for _, known := range []string{"connection refused", "no route to host", "i/o timeout", "certificate signed by unknown authority", "connection reset", "Bad Gateway"} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}
