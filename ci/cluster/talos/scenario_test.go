package talos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/tell"
)

func TestABootstrapThatDoesNothingIsRepeated(t *testing.T) {
	w := newWorld(t, homelab(t, 0, "bootstrap-noop=2"))
	w.powerOn()
	report, _ := w.mustCreate()
	tell.Observation(t, 0, "%d bootstraps, until etcd's members were there", report.Bootstraps)
	if report.Bootstraps != 3 {
		t.Errorf("%d bootstraps, wanted two without effect and one with", report.Bootstraps)
	}
	if !report.Quorum.Complete() {
		t.Errorf("quorum: %s", report.Quorum)
	}
}

func TestABootstrapThatNeverDoesAnythingEndsAtTheDeadline(t *testing.T) {
	w := newWorld(t, homelab(t, 0, "bootstrap-noop=1000"))
	w.powerOn()
	_, took, err := w.create()
	if err == nil || !strings.Contains(err.Error(), "bootstrap calls") || !strings.Contains(err.Error(), "sandbox-cp-") {
		t.Errorf("%v", err)
	}
	if limit := w.options().EtcdDeadline + time.Minute; took > limit {
		t.Errorf("it took %s", took)
	}
}

// oneBootstrap is that a single call is accepted and founds etcd, with the times that real machines get. It returns how many were made.
func oneBootstrap(t *testing.T, fault string) (calls int) {
	w := newWorld(t, homelab(t, 0, fault))
	w.powerOn()
	options := w.options()
	options.NoopGrace, options.BootstrapTimeout = 0, 0
	options.Event = func(event talos.Event) {
		if event.Step == talos.StepBootstrap && event.Phase == talos.PhaseStart {
			calls++ // one goroutine does that
		}
	}
	report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
	if err != nil || report.Bootstraps != 1 {
		t.Errorf("%d bootstraps were accepted: %v", report.Bootstraps, err)
	}
	return calls
}

// Talos itself waits for five seconds, and then refuses.
func TestABootstrapWaitsForTheClock(t *testing.T) { oneBootstrap(t, "time-late=7s") }

func TestABootstrapThatTakesLongIsWaitedFor(t *testing.T) {
	if calls := oneBootstrap(t, "bootstrap-slow=4s"); calls != 1 {
		t.Errorf("%d calls were made while the first was under way", calls)
	}
}

// It leaves etcd stopped, and not bootstrapped.
func TestABootstrapWhoseCallWasCutIsRepeated(t *testing.T) {
	w := newWorld(t, homelab(t, 0, "bootstrap-slow=2s"))
	w.powerOn()
	options := w.options()
	options.BootstrapTimeout = time.Second
	var calls int
	options.Event = func(event talos.Event) {
		if event.Step == talos.StepBootstrap && event.Phase == talos.PhaseStart {
			calls++ // one goroutine does that
		}
	}
	report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
	if err != nil || calls < 2 || report.Bootstraps != 1 {
		t.Errorf("%d calls, of which %d were accepted: %v", calls, report.Bootstraps, err)
	}
}

func TestAnImageThatIsPulledSlowlyIsNoGhost(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration
		want     string
	}{
		"it comes": {deadline: 20 * time.Second},
		"it lasts": {deadline: 4 * time.Second, want: "last seen: pulling etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, homelab(t, 0))
			w.pull(func(ctx context.Context, image string) error {
				if !strings.Contains(image, "etcd") {
					return nil
				}
				select {
				case <-time.After(6 * time.Second): // longer than EtcdDeadline
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			w.powerOn()
			options := w.options()
			options.PullDeadline = c.deadline
			said := false
			options.Event = func(event talos.Event) {
				if event.Step == talos.StepEtcd && strings.HasPrefix(event.Cause, "pulling etcd on sandbox-cp-") {
					said = true
				}
			}
			_, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
			switch {
			case !said:
				t.Error("it does not say what it waits for")
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "":
				if late := as[*talos.LateError](t, err); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "destroy") || late.Waited != "4s" {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestASlowBootstrapIsNotRepeated(t *testing.T) {
	p := homelab(t, 0)
	p.Scale, p.Delays.Bootstrap = 1, 1500*time.Millisecond // longer than NoopGrace; all others would be too
	p.Delays.Boot, p.Delays.Configure, p.Delays.Install, p.Delays.Reboot, p.Delays.EtcdJoin, p.Delays.EtcdPromote = 0, 0, 0, 0, 0, 0
	w := newWorld(t, p)
	w.powerOn()
	if report, _ := w.mustCreate(); report.Bootstraps != 1 {
		t.Errorf("%d bootstraps", report.Bootstraps)
	}
}

func TestAControlPlaneThatComesLateJoinsTheOthers(t *testing.T) {
	w := newWorld(t, homelab(t, 0.02)) // Boot 360 ms, Install 560 ms, Reboot 440 ms
	for _, node := range w.cluster.Nodes[1:] {
		if err := w.fleet.PowerOn(w.vm(node)); err != nil {
			t.Fatal(err)
		}
	}
	var bootstrapped []string
	options := w.options()
	options.Event = func(event talos.Event) {
		switch {
		case event.Node == "sandbox-cp-2" && event.Cause == "installing":
			if err := w.fleet.PowerOn(w.vm(w.cluster.Nodes[0])); err != nil {
				t.Error(err)
			}
		case event.Step == talos.StepBootstrap && event.Phase == talos.PhaseEnd:
			bootstrapped = append(bootstrapped, event.Node) // one goroutine does that
		}
	}
	report, err := talos.Up(context.Background(), w.cluster, w.bundle, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(bootstrapped) != 1 || bootstrapped[0] == "sandbox-cp-1" || report.Quorum.Healthy() != 3 {
		t.Errorf("bootstrapped on %q: %s", bootstrapped, report.Quorum)
	}
}

// making has machines made one after the other, in an order.
type making struct {
	w     *world
	made  map[string]chan struct{}
	order []config.Node
}

func (w *world) making(order ...int) *making {
	m := &making{w: w, made: map[string]chan struct{}{}}
	for _, i := range order {
		m.order = append(m.order, w.cluster.Nodes[i])
		m.made[w.cluster.Nodes[i].Name] = make(chan struct{})
	}
	return m
}

// next makes the next machine; its power is on from then on, unless it was before.
func (m *making) next() {
	if len(m.order) == 0 {
		return
	}
	node := m.order[0]
	m.order = m.order[1:]
	if err := m.w.fleet.PowerOn(m.w.vm(node)); err != nil {
		m.w.t.Error(err)
	}
	close(m.made[node.Name])
}

func (m *making) await(ctx context.Context, node string) error {
	select {
	case <-m.made[node]:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestEtcdIsFoundedWhileMachinesAreStillMade(t *testing.T) {
	w := newWorld(t, homelab(t, 0.02))
	m := w.making(1, 3, 0, 2, 4)
	early := w.cluster.Nodes[4] // somebody's machine at an address whose own one is not made yet
	if err := w.fleet.PowerOn(w.vm(early)); err != nil {
		t.Fatal(err)
	}
	options := w.options()
	options.Made = m.await
	var events sync.Mutex
	var order []string
	options.Event = func(event talos.Event) {
		events.Lock()
		defer events.Unlock()
		switch {
		case event.Step == talos.StepBootstrap && event.Phase == talos.PhaseEnd:
			order = append(order, "etcd on "+event.Node)
			m.next()
		case event.Step == talos.StepMachine && event.Phase == talos.PhaseEnd && event.Node != "sandbox-cp-2":
			order = append(order, event.Node)
			m.next()
		}
	}
	m.next()
	report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
	if err != nil || report.Bootstraps != 1 || report.Quorum.Healthy() != 3 {
		t.Fatalf("%d bootstraps, %s: %v", report.Bootstraps, report.Quorum, err)
	}
	want := []string{"etcd on sandbox-cp-2", "sandbox-worker-1", "sandbox-cp-1", "sandbox-cp-3", "sandbox-worker-2"}
	if !slices.Equal(order, want) {
		t.Errorf("it came up in the order %q, not %q", order, want)
	}
	for _, node := range report.Nodes {
		if node.Result != talos.Configured {
			t.Errorf("%s is %s", node.Name, node.Result)
		}
	}
}

// Who is told of one machine alone mends one, makes all again, and is told of the next one.
func TestWhatIsWrongWithMachinesThatAreStillMadeIsToldTogether(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.renew()
	m := w.making(0, 1, 2, 3, 4)
	options := w.options()
	options.Made, options.Silence = m.await, time.Minute
	options.Event = func(event talos.Event) {
		if event.Step == talos.StepMachine && event.Phase == talos.PhaseEnd { // one at a time, since the next one is made only then
			m.next()
		}
	}
	m.next()
	_, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
	as[*talos.GhostError](t, err)
	for _, node := range w.cluster.Nodes {
		if !strings.Contains(err.Error(), node.Name) {
			t.Errorf("%s is not named: %v", node.Name, err)
		}
	}
}

// The first run is killed between the call and its effect, and has called another control plane than this one would.
func TestABootstrapOfAnEarlierRunIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		takes    time.Duration
		forgets  bool // what the machine noted of it
		deadline time.Duration
	}{
		"it is noted":              {takes: 1500 * time.Millisecond, deadline: 3 * time.Second},
		"the log has forgotten it": {takes: 12 * time.Second, forgets: true, deadline: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := homelab(t, 0)
			p.Scale = 1
			p.Delays = profile.Delays{Bootstrap: c.takes}
			w := newWorld(t, p)
			w.powerOn()
			other := *w.cluster
			other.Nodes = slices.Clone(w.cluster.Nodes)
			other.Nodes[0], other.Nodes[2] = other.Nodes[2], other.Nodes[0]
			ctx, kill := context.WithCancel(context.Background())
			options := w.options()
			called := ""
			options.Event = func(event talos.Event) {
				if event.Step == talos.StepBootstrap && event.Phase == talos.PhaseStart {
					time.Sleep(time.Second) // as long as a machine takes to start its container runtime before
				}
				if event.Step == talos.StepBootstrap && event.Phase == talos.PhaseEnd {
					called = event.Node
					kill()
				}
			}
			if _, err := talos.Up(ctx, &other, w.bundle, options); !errors.Is(err, context.Canceled) || called == "" {
				t.Fatalf("%q was called: %v", called, err)
			}
			if c.forgets {
				w.flood(t.Context(), called)
			}
			options = w.options()
			options.EtcdDeadline = c.deadline
			report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
			if err != nil || report.Bootstraps != 0 || report.Quorum.Healthy() != 3 {
				t.Errorf("%d more bootstraps, %s: %v", report.Bootstraps, report.Quorum, err)
			}
		})
	}
}

func TestAGhostIsNamedWithinTheDeadline(t *testing.T) {
	for _, ghost := range []struct{ fault, name string }{
		{"ghosts=521", "sandbox-cp-1"},
		{"ghosts=522", "sandbox-cp-2"},
	} {
		t.Run(ghost.name, func(t *testing.T) {
			w := newWorld(t, homelab(t, 0, ghost.fault))
			w.powerOn()
			_, took, err := w.create()
			named := as[*talos.GhostError](t, err)
			if named.Node != ghost.name {
				t.Errorf("%s is named", named.Node)
			}
			if !strings.Contains(err.Error(), "destroy the cluster") {
				t.Errorf("no way out: %v", err)
			}
			if limit := w.options().EtcdDeadline + time.Minute; took > limit {
				t.Errorf("it took %s, more than %s", took, limit)
			}

			// The way out that the error names ends it.
			for _, node := range w.cluster.Nodes {
				if err := w.fleet.Removed(node.VMID); err != nil {
					t.Fatal(err)
				}
			}
			w.powerOn()
			w.mustCreate()
		})
	}
}

func TestMachinesOfAnotherClusterAreAllNamed(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.renew()
	_, took, err := w.create()
	as[*talos.GhostError](t, err)
	for _, node := range w.cluster.Nodes {
		if !strings.Contains(err.Error(), node.Name) {
			t.Errorf("%s is not named: %v", node.Name, err)
		}
	}
	if took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestAReplacedControlPlaneJoinsAgain(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.replace(0) // the first that bootstrap would be called on
	report, _ := w.mustCreate()
	if report.Bootstraps != 0 {
		t.Error("etcd was bootstrapped although two members hold it")
	}
	for i, node := range report.Nodes {
		if wanted := map[bool]string{true: talos.Configured, false: talos.UnchangedNode}[i == 0]; node.Result != wanted {
			t.Errorf("%s is %q", node.Name, node.Result)
		}
	}
}

func TestAMachineWhoseAddressBelongsToAnotherMemberIsNamed(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.cluster.Nodes[2].Name = "sandbox-cp-9" // etcd does not give the address of sandbox-cp-3 to another member
	w.replace(2)
	report, took, err := w.create()
	if named := as[*talos.GhostError](t, err); named.Node != "sandbox-cp-9" {
		t.Errorf("%s is named", named.Node)
	}
	if limit := w.options().EtcdDeadline + time.Minute; took > limit {
		t.Errorf("it took %s", took)
	}
	if report.Bootstraps != 0 {
		t.Error("etcd was bootstrapped although two members hold it")
	}
}

func TestADriftedMachineIsNamed(t *testing.T) {
	w := newWorld(t, homelab(t, 0, "dhcp-drift=524"))
	w.powerOn()
	options := w.options()
	options.Silence = time.Second
	_, err := talos.Up(context.Background(), w.cluster, w.bundle, options)
	drift := as[*talos.DriftError](t, err)
	if drift.Node != "sandbox-worker-1" || drift.Declared != w.cluster.Nodes[3].Address {
		t.Errorf("named: %+v", drift)
	}
	if len(drift.Live) != 1 || drift.Live[0].As4()[3] != 254 {
		t.Errorf("live: %s", drift.Live)
	}
}

func TestTheVirtualAddressFlapsOnce(t *testing.T) {
	w := newWorld(t, homelab(t, 0, "vip-flaps=300ms"))
	w.powerOn()
	w.mustCreate()
	w.eventually("the flap", func() bool { return len(w.holders()) >= 3 })
	first, gone, back := w.holders()[0], w.holders()[1], w.holders()[2]
	if first == "" || gone != "" || back != first {
		t.Errorf("holders: %q", w.holders())
	}
}

func TestUpGoesOnAfterAPowerCutInBetween(t *testing.T) {
	p := homelab(t, 0.01) // Install 280 ms, Reboot 220 ms, Bootstrap 80 ms
	for _, cut := range []time.Duration{100, 300, 500, 700, 800} {
		w := newWorld(t, p)
		w.powerOn()
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = talos.Up(ctx, w.cluster, w.bundle, w.options()) }) // it is killed below
		time.Sleep(cut * time.Millisecond)
		cancel()
		wait.Wait()
		w.restart()
		report, _, err := w.create()
		if err != nil {
			t.Fatalf("after a cut at %d ms: %v", cut, err)
		}
		if report.Quorum.Healthy() != 3 {
			t.Errorf("after a cut at %d ms: %s", cut, report.Quorum)
		}
	}
}

func TestUpOutlastsAPowerCutWhileItRuns(t *testing.T) {
	w := newWorld(t, homelab(t, 0.01))
	w.powerOn()
	failed := make(chan error, 1)
	go func() {
		_, err := talos.Up(context.Background(), w.cluster, w.bundle, w.options())
		failed <- err
	}()
	time.Sleep(400 * time.Millisecond)
	for _, node := range w.cluster.Nodes[1:] {
		if err := w.fleet.PowerOff(node.VMID); err != nil {
			t.Fatal(err)
		}
	}
	w.powerOn()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

func TestACompleteClusterComesBackAfterAPowerCut(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	first, _ := w.mustCreate()
	w.restart()
	second, _ := w.mustCreate()
	if second.Changed() {
		t.Errorf("changed: %+v", second)
	}
	for i, member := range second.Quorum.Members {
		if member.ID != first.Quorum.Members[i].ID {
			t.Errorf("%s is another member now", member.Node)
		}
	}
	if info, err := os.Stat(w.state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the disks hold secrets: %v, %v", info, err)
	}
}

func TestALearnerThatWasCutJoinsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		delays profile.Delays
		ran    bool // its etcd, which tells the others its name
	}{
		"its etcd ran":             {profile.Delays{EtcdPromote: 2 * time.Second}, true},
		"its etcd had not started": {profile.Delays{EtcdJoin: 3 * time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := homelab(t, 0)
			p.Scale, p.Delays = 1, c.delays
			w := newWorld(t, p)
			w.powerOn()
			ctx, kill := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = talos.Up(ctx, w.cluster, w.bundle, w.options()) // it is killed
			}()
			access := w.dial()
			w.eventually("a learner", func() bool {
				quorum, _ := access.EtcdQuorum(t.Context()) // who does not answer yet is asked again
				return slices.ContainsFunc(quorum.Members, func(member talos.Member) bool { return member.Learner && (member.Name != "") == c.ran })
			})
			kill()
			<-ended
			tell.Fault(t, "a power cut while a control plane is a learner of etcd, and %s", name)
			w.restart()
			options := w.options()
			options.EtcdDeadline, options.LearnerGrace = 15*time.Second, 3*time.Second // longer than its etcd takes to start
			report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
			if err != nil {
				t.Fatal(err)
			}
			if report.Quorum.Healthy() != 3 || len(report.Quorum.Members) != 3 || report.Bootstraps != 0 {
				t.Errorf("%d bootstraps: %s", report.Bootstraps, report.Quorum)
			}
		})
	}
}

// Each call is noted in the log that says of a learner that Talos makes it a voter; what castle itself asks while it waits pushes that out.
func TestALearnerIsLetBeWhoseLogHasForgottenThatItJoins(t *testing.T) {
	p := homelab(t, 0)
	p.Scale, p.Delays = 1, profile.Delays{EtcdPromote: 8 * time.Second}
	w := newWorld(t, p)
	w.cluster.Nodes = w.cluster.Nodes[:2]
	w.powerOn()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	learner := make(chan string, 1)
	var rejoined []string
	options := w.options()
	options.EtcdDeadline = time.Minute
	options.Event = func(event talos.Event) {
		for _, node := range w.cluster.Nodes {
			if event.Step == talos.StepEtcd && strings.Contains(event.Cause, node.Name+" is still a learner") {
				select {
				case learner <- node.Name:
				default:
				}
			}
		}
		if event.Step == talos.StepRejoin {
			rejoined = append(rejoined, event.Node) // one goroutine does that
		}
	}
	go func() {
		select {
		case name := <-learner:
			w.flood(ctx, name)
		case <-ctx.Done():
		}
	}()
	report, err := talos.Up(t.Context(), w.cluster, w.bundle, options)
	if err != nil || rejoined != nil || report.Quorum.Healthy() != 2 {
		t.Errorf("%q joined anew, %s: %v", rejoined, report.Quorum, err)
	}
}

func TestWhatJoinedIsWellRightAway(t *testing.T) {
	p := homelab(t, 0)
	p.Scale, p.Delays = 1, profile.Delays{EtcdHealth: time.Minute}
	w := newWorld(t, p)
	w.powerOn()
	w.mustCreate()
	for _, status := range w.dial().Status(t.Context()) {
		if strings.Contains(status.Problem, "etcd") {
			t.Errorf("%s: %s", status.Name, status.Problem)
		}
	}
}

func TestTheTimeIsTheDelaysAndLittleMore(t *testing.T) {
	const scale = 0.05
	p := homelab(t, scale)
	w := newWorld(t, p)
	w.powerOn()
	options := w.options()
	options.Poll = 0 // the default
	began := time.Now()
	if _, err := talos.Up(context.Background(), w.cluster, w.bundle, options); err != nil {
		t.Fatal(err)
	}
	d := p.Delays
	critical := p.Scaled(d.Boot + d.Configure + d.Bootstrap + 2*(d.EtcdJoin+d.EtcdPromote)) // one joins after the other
	if took := time.Since(began); took > critical+30*time.Second || took < critical {
		t.Errorf("it took %s, the delays alone %s", took, critical)
	}
}

func TestAChangeThatNeedsNoRestartIsApplied(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.cluster.Network.DNS = append(w.cluster.Network.DNS, netip.MustParseAddr("192.0.2.53"))
	report, _ := w.mustCreate()
	for _, node := range report.Nodes {
		if node.Result != talos.Reconfigured {
			t.Errorf("%s is %q", node.Name, node.Result)
		}
	}
	if again, _ := w.mustCreate(); again.Changed() || report.Bootstraps != 0 {
		t.Errorf("changed again: %+v", again)
	}
}

// Talos would take it, and the node would not open its disk when it starts the next time.
func TestWhatAClusterHasForGoodIsNotChanged(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.cluster.Talos.DiskEncryption.Ephemeral = config.EncryptionNone
	w.cluster.Kubernetes.PodSubnet = netip.MustParsePrefix("10.243.0.0/16")
	access, err := talos.Dial(w.cluster, w.bundle, w.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(access.Close)
	_, known := access.Changes(t.Context(), w.bundle)
	report, _, applied := w.create()
	for what, err := range map[string]error{"beforehand": known, "where it is applied": applied} {
		as[*talos.LastingError](t, err)
		for _, want := range []string{"talos.diskEncryption.ephemeral of sandbox-cp-1 is luks2, and cluster.yaml would make it none", "kubernetes.podSubnet of sandbox-worker-2 is 10.244.0.0/16"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s, no %q in: %v", what, want, err)
			}
		}
	}
	if report.Changed() {
		t.Errorf("something was changed: %+v", report)
	}
}

// patch is a patch as the hooks are handed it.
func patch(t *testing.T, text string) config.Patch {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var p config.Patch
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhoseConfigurationDiffersIsKnownAndOneIsChangedAtATime(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	changes := func() (list []talos.Change, names []string) {
		t.Helper()
		access, err := talos.Dial(w.cluster, w.bundle, w.options())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(access.Close)
		if list, err = access.Changes(t.Context(), w.bundle); err != nil {
			t.Fatal(err)
		}
		for _, change := range list {
			names = append(names, fmt.Sprint(change.Node, change.Restart))
		}
		return list, names
	}
	if _, names := changes(); names != nil {
		t.Fatalf("%v differ from the start", names)
	}
	w.cluster.Talos.Patches.Worker = []config.Patch{patch(t, "machine: {sysctls: {vm.max_map_count: \"262144\"}}")}
	w.cluster.Nodes[0].Patches = []config.Patch{patch(t, "machine: {env: {GRPC_GO_LOG: info}}")}
	list, names := changes()
	if !slices.Equal(names, []string{"sandbox-cp-1true", "sandbox-worker-1false", "sandbox-worker-2false"}) {
		t.Fatalf("%v differ", names)
	}
	if err := list[1].Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.PowerOff(525); err != nil { // who is silent is left out
		t.Fatal(err)
	}
	if _, names = changes(); !slices.Equal(names, []string{"sandbox-cp-1true"}) {
		t.Errorf("%v differ still", names)
	}
	if err := list[0].Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually("the restart", func() bool { return w.fleet.Stage(521) == "rebooting" || w.fleet.Stage(521) == "running" })
	w.eventually("its configuration", func() bool { _, names := changes(); return w.fleet.Stage(521) == "running" && names == nil })
}

func TestASilentNodeEndsWithItsNameAndTheLastThingSeen(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	if err := w.fleet.PowerOff(525); err != nil {
		t.Fatal(err)
	}
	options := w.options()
	options.NodeDeadline = time.Second
	_, err := talos.Up(context.Background(), w.cluster, w.bundle, options)
	silent := as[*talos.SilentError](t, err)
	if silent.Node != "sandbox-worker-2" || !strings.Contains(silent.Seen, "connection refused") {
		t.Errorf("named: %+v", silent)
	}
}

func TestAnAlarmIsNamedWithItsCureAndNothingIsGivenUp(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.profile = homelab(t, 0, "etcd-alarm=522")
	w.restart()
	_, took, err := w.create()
	alarm := as[*talos.AlarmError](t, err)
	if alarm.Node != "sandbox-cp-2" || alarm.Alarm != "NOSPACE" || !strings.Contains(err.Error(), "etcd alarm disarm") || strings.Contains(err.Error(), "destroy") {
		t.Errorf("%v", err)
	}
	if took > time.Minute {
		t.Errorf("it took %s", took)
	}
	w.disarm()
	if report, _ := w.mustCreate(); report.Bootstraps != 0 || !report.Quorum.Complete() {
		t.Errorf("after the alarm was cleared: %+v", report)
	}
}

// A full disk, a broken one, too little memory: what this machine holds may be the last copy.
func TestAConfiguredControlPlaneWhoseEtcdDoesNotComeBackIsNoGhost(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.profile = homelab(t, 0, "ghosts=523") // its etcd never gets past Preparing, with data on the disk
	w.restart()
	_, _, err := w.create()
	unwell := as[*talos.UnwellError](t, err)
	if unwell.Node != "sandbox-cp-3" || !strings.Contains(err.Error(), "may be alive") || strings.Contains(err.Error(), "destroy") {
		t.Errorf("%v", err)
	}
}

// Etcd refuses a change of its members for a while after one has started, and Talos hands that on where it is asked to remove another one.
func TestAMemberIsTakenOutThoughAnotherHasJustComeBack(t *testing.T) {
	p := homelab(t, 1)
	p.Delays = profile.Delays{EtcdSettles: 4 * time.Second}
	w := newWorld(t, p)
	w.powerOn()
	w.mustCreate()
	access := w.dial()
	back := w.cluster.Nodes[2]
	if err := errors.Join(w.fleet.PowerOff(back.VMID), w.fleet.PowerOn(w.vm(back))); err != nil {
		t.Fatal(err)
	}
	var quorum talos.Quorum
	w.eventually("it is back", func() bool {
		quorum, _ = access.EtcdQuorum(t.Context()) // asked again
		return quorum.Complete()
	})
	gone := quorum.Without(w.cluster.Nodes[1].Name)
	if err := access.RemoveMember(t.Context(), *gone.Member); err != nil {
		t.Error(err)
	}
	if quorum, err := access.EtcdQuorum(t.Context()); err != nil || quorum.Without(gone.Member.Name).Member != nil {
		t.Errorf("%s: %v", quorum, err)
	}
}
