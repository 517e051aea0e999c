package talosnodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// scenarios are a cluster's life, one after the other: each begins with what the one before left.
var scenarios = []struct {
	name   string
	play   func(*testing.T, *yard)
	needed bool // by those after it
}{
	{"a machine waits in maintenance mode", maintenance, true},
	{"maintenance mode refuses what it does not do", refusedInMaintenance, false},
	{"a wrong configuration is refused and changes nothing", wrongConfiguration, false},
	{"machines become a quorum, one learner at a time", quorum, true},
	{"etcd is begun anew where it was bootstrapped", begunAnew, false},
	{"a second up changes nothing", unchanged, false},
	{"a configured machine refuses in Talos's words", refusedWhenConfigured, false},
	{"a change that needs a restart is told by a dry run", dryRun, false},
	{"a machine of another cluster is named", ghosts, false},
	{"a control plane comes back after a power cut", powerCut, false},
	{"the virtual address moves after a power cut", failover, false},
	{"the virtual address moves when its holder ends in order", handover, false},
	{"a member leaves", leave, false},
	{"a blank machine takes its place", replaced, false},
	{"a learner that was cut stays one, and keeps its place", cutLearner, false},
	{"a machine that was cut before its etcd started joins anew", cutBefore, false},
	{"etcd lets no member go that its quorum needs", needed, false},
}

func play(t *testing.T, y *yard) {
	for _, scenario := range scenarios {
		if !t.Run(scenario.name, func(t *testing.T) { scenario.play(t, y) }) && scenario.needed {
			t.Fatal("nothing of what comes after that can be played")
		}
	}
}

// only is the first machine, which is the only one that is on at first.
func (y *yard) only() config.Node { return y.cluster.Nodes[0] }

func (y *yard) controlPlanes() []config.Node { return y.cluster.Nodes[:3] }

func (y *yard) worker() config.Node { return y.cluster.Nodes[3] }

func maintenance(t *testing.T, y *yard) {
	if err := y.start(y.only()); err != nil {
		t.Fatal(err)
	}
	c := y.stranger(t, y.only().Address)
	y.eventually(t, "it answers in maintenance mode", func() error {
		version, err := c.Version(call(t))
		if err == nil && version.GetMessages()[0].GetVersion().GetTag() != y.cluster.Talos.Version {
			t.Fatalf("it is %v", version)
		}
		return err
	})
	for _, node := range y.access(t).Status(t.Context()) {
		want := talos.IsSilent
		if node.Name == y.only().Name {
			want = talos.InMaintenance
		}
		if node.State != want {
			t.Errorf("%s is %s: %s", node.Name, node.State, node.Problem)
		}
	}
}

func refusedInMaintenance(t *testing.T, y *yard) {
	c := y.stranger(t, y.only().Address)
	answers := map[string]error{}
	answers["bootstrap"] = c.Bootstrap(call(t), &machine.BootstrapRequest{})
	_, answers["members"] = c.EtcdMemberList(call(t), &machine.EtcdMemberListRequest{})
	_, answers["services"] = c.ServiceList(call(t))
	_, answers["kubeconfig"] = c.Kubeconfig(call(t))
	answers["leave"] = c.EtcdLeaveCluster(call(t), &machine.EtcdLeaveClusterRequest{})
	compare(t, answers, map[string]string{
		"bootstrap": "PermissionDenied: not authorized", "members": "Unimplemented: member list is only available on control plane nodes",
		"services": "OK", "kubeconfig": "PermissionDenied: not authorized", "leave": "PermissionDenied: not authorized",
	})
}

// compare holds answers against those that are known, the same for simulated and real machines.
func compare(t *testing.T, answers map[string]error, want map[string]string) {
	t.Helper()
	for call, answer := range answers {
		if got := said(answer); !strings.HasPrefix(got, want[call]) || want[call] == "" {
			t.Errorf("%s: %q, not %q", call, got, want[call])
		}
	}
}

func wrongConfiguration(t *testing.T, y *yard) {
	c := y.stranger(t, y.only().Address)
	apply := func(data []byte) error {
		_, err := c.ApplyConfiguration(call(t), &machine.ApplyConfigurationRequest{Data: data, Mode: machine.ApplyConfigurationRequest_AUTO})
		return err
	}
	right := y.config(t, y.only())
	answers := map[string]error{
		"no YAML":       apply([]byte("{")),
		"unknown field": apply(bytes.Replace(right, []byte("\nmachine:\n"), []byte("\nmachine:\n    nonesuch: true\n"), 1)),
		"wrong type":    apply(bytes.Replace(right, []byte("type: controlplane"), []byte("type: nonesuch"), 1)),
	}
	compare(t, answers, map[string]string{"no YAML": "InvalidArgument: ", "unknown field": "InvalidArgument: error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n    nonesuch: true\n",
		"wrong type": "InvalidArgument: "})
	for name, answer := range answers {
		t.Logf("%s: %s", name, said(answer))
	}
	if _, err := c.Version(call(t)); err != nil {
		t.Errorf("it is not in maintenance mode any more: %v", err)
	}
}

// quorum brings all machines up while somebody looks at etcd's members.
func quorum(t *testing.T, y *yard) {
	for _, node := range y.cluster.Nodes[1:] {
		if err := y.start(node); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	looked := make(chan int) // the most learners at a time
	first := y.person(t, y.only().Address)
	go func() {
		most := 0
		for ctx.Err() == nil {
			call, cancel := context.WithTimeout(ctx, y.lasts/300) // before it is a member, a machine lets it wait
			list, err := first.EtcdMemberList(call, &machine.EtcdMemberListRequest{})
			cancel()
			learners := 0
			if err == nil {
				for _, member := range list.GetMessages()[0].GetMembers() {
					if member.GetIsLearner() {
						learners++
					}
				}
			}
			most = max(most, learners)
			time.Sleep(y.lasts / 2000) // machines write each call into a log that is as long as it is
		}
		looked <- most
	}()
	report := y.up(t)
	end()
	if most := <-looked; most != 1 {
		t.Errorf("%d learners were there at the same time", most)
	}
	if report.Bootstraps != 1 || !report.Quorum.Complete() || report.Quorum.Healthy() != 3 {
		t.Errorf("%d bootstraps, %s", report.Bootstraps, report.Quorum)
	}
	for _, node := range report.Nodes {
		if node.Result != talos.Configured {
			t.Errorf("%s is %q", node.Name, node.Result)
		}
	}
}

// begunAnew is what create goes by where a machine's log has forgotten the bootstrap.
func begunAnew(t *testing.T, y *yard) {
	var after []time.Duration // trustd, which a machine begins together with etcd
	for _, node := range y.controlPlanes() {
		list, err := y.person(t, node.Address).ServiceList(call(t))
		if err != nil {
			t.Fatal(err)
		}
		begun := map[string]time.Time{}
		for _, service := range list.GetMessages()[0].GetServices() {
			begun[service.GetId()] = service.GetEvents().GetEvents()[0].GetTs().AsTime()
		}
		after = append(after, begun["etcd"].Sub(begun["trustd"]))
	}
	slices.Sort(after)
	t.Logf("etcd was begun %s after trustd", after)
	if after[1] > 250*time.Millisecond || after[2] < 2*after[1] {
		t.Errorf("etcd was begun %s after trustd", after)
	}
}

func unchanged(t *testing.T, y *yard) {
	if report := y.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
	access := y.access(t)
	y.eventually(t, "all are healthy", func() error {
		var problems []error
		for _, node := range access.Status(t.Context()) {
			problems = append(problems, unless(node.Healthy(), "%s: %s", node.Name, node.Problem))
		}
		return errors.Join(problems...)
	})
}

func refusedWhenConfigured(t *testing.T, y *yard) {
	control, worker := y.person(t, y.only().Address), y.person(t, y.worker().Address)
	answers := map[string]error{}
	answers["bootstrap"] = control.Bootstrap(call(t), &machine.BootstrapRequest{})
	_, answers["members"] = control.EtcdMemberList(call(t), &machine.EtcdMemberListRequest{})
	_, answers["members of a worker"] = worker.EtcdMemberList(call(t), &machine.EtcdMemberListRequest{})
	answers["bootstrap of a worker"] = worker.Bootstrap(call(t), &machine.BootstrapRequest{})
	answers["leave of a worker"] = worker.EtcdLeaveCluster(call(t), &machine.EtcdLeaveClusterRequest{})
	answers["remove of nobody"] = control.EtcdRemoveMemberByID(call(t), &machine.EtcdRemoveMemberByIDRequest{MemberId: 1})
	compare(t, answers, map[string]string{
		"bootstrap": "AlreadyExists: etcd data directory is not empty", "members": "OK",
		"members of a worker":   "Unimplemented: member list is only available on control plane nodes",
		"bootstrap of a worker": "Unimplemented: bootstrap is only available on control plane nodes",
		"leave of a worker":     "Unimplemented: etcd leave is only available on control plane nodes",
		"remove of nobody":      "NotFound: failed to remove member 1: etcdserver: member not found",
	})
	y.eventually(t, "a stranger is told", func() error { // where writing is faster than the refusal, it sees a broken connection
		_, err := y.stranger(t, y.only().Address).Version(call(t))
		return unless(status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "certificate required"), "%v", err)
	})
}

func dryRun(t *testing.T, y *yard) {
	c := y.person(t, y.only().Address)
	try := func(data []byte) (machine.ApplyConfigurationRequest_Mode, string) {
		t.Helper()
		answer, err := c.ApplyConfiguration(call(t), &machine.ApplyConfigurationRequest{Data: data, Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetMessages()[0].GetMode(), answer.GetMessages()[0].GetModeDetails()
	}
	same := y.config(t, y.only())
	token := bytes.Replace(same, []byte("\n    token: "), []byte("\n    token: another."), 1)
	for name, c := range map[string]struct {
		data []byte
		mode machine.ApplyConfigurationRequest_Mode
		says []string
	}{
		"the same": {same, machine.ApplyConfigurationRequest_NO_REBOOT,
			[]string{"Dry run summary:\nApplied configuration without a reboot (skipped in dry-run).\nConfig diff:\n\nNo changes."}},
		"another installation": {bytes.Replace(same, []byte("wipe: false"), []byte("wipe: true"), 1), machine.ApplyConfigurationRequest_NO_REBOOT,
			[]string{"Applied configuration without a reboot (skipped in dry-run).\nConfig diff:\n\n--- a\n+++ b\n", "+        wipe: true"}},
		"another token": {token, machine.ApplyConfigurationRequest_REBOOT,
			[]string{"Dry run summary:\nApplied configuration with a reboot (skipped in dry-run).\nConfig diff:\n\n--- a\n+++ b\n"}},
	} {
		mode, details := try(c.data)
		if mode != c.mode {
			t.Errorf("%s: %s", name, mode)
		}
		for _, want := range c.says {
			if !strings.Contains(details, want) {
				t.Errorf("%s: %q says not %q", name, details, want)
			}
		}
	}
	_, err := c.ApplyConfiguration(call(t), &machine.ApplyConfigurationRequest{Data: token, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
	compare(t, map[string]error{"another token": err},
		map[string]string{"another token": "InvalidArgument: this config change can't be applied in immediate mode\ndiff:\n--- a\n+++ b\n"})
}

func ghosts(t *testing.T, y *yard) {
	data, err := machineconfig.NewSecrets(y.cluster)
	if err != nil {
		t.Fatal(err)
	}
	other, err := machineconfig.ParseSecrets(data)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = y.tryUp(t, other)
	if ghost := (*talos.GhostError)(nil); !errors.As(err, &ghost) {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	for _, node := range y.cluster.Nodes {
		if !strings.Contains(err.Error(), node.Name) {
			t.Errorf("%s is not named: %v", node.Name, err)
		}
	}
}

func powerCut(t *testing.T, y *yard) {
	access := y.access(t)
	seen, err := access.EtcdQuorum(t.Context())
	if err != nil || !seen.Complete() {
		t.Fatalf("%s: %v", seen, err)
	}
	lost := y.controlPlanes()[slices.IndexFunc(y.controlPlanes(), func(node config.Node) bool { return node.Name == seen.Leader })]
	if err := y.cut(lost); err != nil {
		t.Fatal(err)
	}
	y.eventually(t, "the others have another leader", func() error {
		seen, err := access.EtcdQuorum(t.Context())
		if err != nil {
			return err
		}
		return unless(seen.Healthy() == 2 && seen.Leader != "" && seen.Leader != lost.Name, "%s", seen)
	})
	if err := y.start(lost); err != nil {
		t.Fatal(err)
	}
	if report := y.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}

// held is who has the virtual address, once somebody has it.
func (y *yard) held(t *testing.T, but string) config.Node {
	t.Helper()
	var holder config.Node
	y.eventually(t, "somebody has the virtual address", func() error {
		name := y.holder(t)
		for _, node := range y.controlPlanes() {
			if node.Name == name && name != but {
				holder = node
				return nil
			}
		}
		return unless(false, "%q has it", name)
	})
	return holder
}

func failover(t *testing.T, y *yard) {
	holder := y.held(t, "")
	if err := y.cut(holder); err != nil {
		t.Fatal(err)
	}
	y.held(t, holder.Name)
	if err := y.start(holder); err != nil {
		t.Fatal(err)
	}
	if report := y.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}

func handover(t *testing.T, y *yard) {
	holder := y.held(t, "")
	off := y.stop(t, holder)
	y.held(t, holder.Name)
	if err := off(); err != nil {
		t.Fatal(err)
	}
	if err := y.start(holder); err != nil {
		t.Fatal(err)
	}
	if report := y.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}

// gone is who leaves.
func (y *yard) gone() config.Node { return y.controlPlanes()[2] }

func leave(t *testing.T, y *yard) {
	began := time.Now()
	access := y.access(t)
	if err := access.LeaveEtcd(t.Context(), y.gone().Name); err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %s", time.Since(began).Round(100*time.Millisecond))
	seen, err := access.EtcdQuorum(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range seen.Members {
		if member.Node == y.gone().Name {
			t.Errorf("it is a member still: %s", seen)
		}
	}
	if seen.Healthy() != 2 {
		t.Errorf("%s", seen)
	}
}

func replaced(t *testing.T, y *yard) {
	if err := y.wipe(y.gone()); err != nil {
		t.Fatal(err)
	}
	if err := y.start(y.gone()); err != nil {
		t.Fatal(err)
	}
	report := y.up(t)
	if report.Bootstraps != 0 || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
	for _, node := range report.Nodes {
		if want := map[bool]string{true: talos.Configured, false: talos.UnchangedNode}[node.Name == y.gone().Name]; node.Result != want {
			t.Errorf("%s is %q", node.Name, node.Result)
		}
	}
}

func needed(t *testing.T, y *yard) {
	lost, wanted := y.controlPlanes()[2], y.controlPlanes()[1]
	list, err := y.person(t, y.only().Address).EtcdMemberList(call(t), &machine.EtcdMemberListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	members := list.GetMessages()[0].GetMembers()
	i := slices.IndexFunc(members, func(member *machine.EtcdMember) bool { return member.GetHostname() == wanted.Name })
	if err := y.cut(lost); err != nil {
		t.Fatal(err)
	}
	var refused error
	y.eventually(t, "it is refused", func() error { // etcd notices that a member is gone within seconds
		refused = y.person(t, y.only().Address).EtcdRemoveMemberByID(call(t), &machine.EtcdRemoveMemberByIDRequest{MemberId: members[i].GetId()})
		if refused == nil {
			t.Fatal("of two that run, one was taken out")
		}
		return unless(strings.HasSuffix(said(refused), "etcdserver: unhealthy cluster"), "%s", said(refused))
	})
	if want := fmt.Sprintf("Unknown: failed to remove member: failed to remove member %d: etcdserver: unhealthy cluster", members[i].GetId()); said(refused) != want {
		t.Errorf("%q, not %q", said(refused), want)
	}
	if err := y.start(lost); err != nil {
		t.Fatal(err)
	}
	if report := y.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}

// learner is etcd's member of a node while it is one; its etcd has told the others its name where it ran.
func learner(access *talos.Access, t *testing.T, of config.Node, ran bool) (talos.Member, error) {
	seen, err := access.EtcdQuorum(t.Context())
	for _, member := range seen.Members {
		if member.Node == of.Name && member.Learner && (member.Name != "") == ran {
			return member, nil
		}
	}
	return talos.Member{}, errors.Join(err, fmt.Errorf("%s is no such learner: %s", of.Name, seen))
}

// join has a blank machine join, of whose name there is a member still, and cuts its power when it is a learner.
func (y *yard) join(t *testing.T, ran bool) {
	t.Helper()
	access := y.access(t)
	if err := errors.Join(y.wipe(y.gone()), y.start(y.gone())); err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = talos.Up(ctx, y.cluster, y.bundle, y.options()) // it is killed
	}()
	y.eventually(t, "a learner", func() error {
		_, err := learner(access, t, y.gone(), ran)
		return err
	})
	kill()
	<-ended
	if err := errors.Join(y.cut(y.gone()), y.start(y.gone())); err != nil {
		t.Fatal(err)
	}
}

// cutBefore is the second between a machine's word to etcd and its own etcd's start.
func cutBefore(t *testing.T, y *yard) {
	y.join(t, false)
	if report := y.up(t); report.Bootstraps != 0 || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}

// cutLearner is what create has a machine join anew for. That it wipes a partition is beyond container mode, and so done by hand here.
func cutLearner(t *testing.T, y *yard) {
	y.join(t, true)
	access := y.access(t)
	y.eventually(t, "it answers", func() error {
		_, err := y.person(t, y.gone().Address).EtcdStatus(call(t))
		return err
	})
	for began := time.Now(); time.Since(began) < y.lasts/8; time.Sleep(y.lasts / 200) {
		if _, err := learner(access, t, y.gone(), true); err != nil {
			t.Fatal(err)
		}
	}
	member, err := learner(access, t, y.gone(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(access.RemoveMember(t.Context(), member), y.wipe(y.gone()), y.start(y.gone())); err != nil {
		t.Fatal(err)
	}
	if report := y.up(t); report.Bootstraps != 0 || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
}
