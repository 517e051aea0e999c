package talos

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/cluster/config"
)

// threeViews is a healthy etcd of three, as its members report it.
func threeViews() ([]*node, []view) {
	var nodes []*node
	var list []*machine.EtcdMember
	for i, address := range []string{"192.0.2.11", "192.0.2.12", "192.0.2.13"} {
		name := "cp-" + string(rune('1'+i))
		nodes = append(nodes, &node{Node: config.Node{Name: name, Role: config.RoleControlPlane, Address: netip.MustParseAddr(address)}})
		list = append(list, &machine.EtcdMember{Id: uint64(i + 1), Hostname: name, PeerUrls: []string{"https://" + address + ":2380"}})
	}
	var views []view
	for i := range nodes {
		views = append(views, view{state: running, data: dataFull, members: list, status: &machine.EtcdMemberStatus{MemberId: uint64(i + 1), Leader: 2}})
	}
	return nodes, views
}

func everywhere(views []view, list []*machine.EtcdMember) {
	for i := range views {
		views[i].members = list
	}
}

func TestACallThatWasCutIsKnownByTalossOwnWords(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{status.Error(codes.Unknown, "failed to stop etcd: context deadline exceeded"), true},
		{status.Error(codes.Unknown, "failed to stop etcd: context canceled"), true},
		{status.Error(codes.Unknown, "failed to stop etcd: no such service"), false},
		{status.Error(codes.Internal, "context deadline exceeded"), false}, // etcd's own, of which Talos says more by its code
		{nil, false},
	} {
		if got := cut(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

func TestAQuorumIsCompleteOnlyWithoutAnyProblem(t *testing.T) {
	nodes, views := threeViews()
	if quorum := quorumOf(nodes, views); !quorum.Complete() || quorum.Leader != "cp-2" {
		t.Fatalf("healthy: %s", quorum)
	}
	for name, spoil := range map[string]func([]view){
		"etcd of cp-3 is Preparing":       func(v []view) { v[2] = view{state: "Preparing"} },
		"cp-3 has not started etcd":       func(v []view) { v[2] = view{} },
		"etcd of cp-1 is still a learner": func(v []view) { v[0].status.IsLearner = true },
		"etcd of cp-1 sees no leader":     func(v []view) { v[0].status.Leader = 0 },
		"etcd of cp-1 reports NOSPACE":    func(v []view) { v[0].status.Errors = []string{"NOSPACE"} },
		"different leaders":               func(v []view) { v[0].status.Leader = 3 },
		"cp-3 is no member":               func(v []view) { everywhere(v, v[0].members[:2]) },
		"two members for its address, 1 and 9": func(v []view) {
			everywhere(v, append(v[0].members, &machine.EtcdMember{Id: 9, PeerUrls: v[0].members[0].PeerUrls}))
		},
		"stands at 192.0.2.99, which no control plane declares": func(v []view) {
			everywhere(v, append(v[0].members, &machine.EtcdMember{Id: 9, PeerUrls: []string{"https://192.0.2.99:2380"}}))
		},
	} {
		nodes, views := threeViews()
		spoil(views)
		if quorum := quorumOf(nodes, views); quorum.Complete() || !strings.Contains(quorum.String(), name) {
			t.Errorf("%s: %s", name, quorum)
		}
	}
}

func TestMembersThatMustNotBeAreNamedWhenTheyStay(t *testing.T) {
	nodes, views := threeViews()
	everywhere(views, append(views[0].members, &machine.EtcdMember{Id: 9, PeerUrls: views[0].members[1].PeerUrls}))
	f := &bootstrapper{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
	quorum := quorumOf(nodes, views)
	for look := 1; look < manyLooks; look++ {
		if err := f.diagnose(views, quorum); err != nil {
			t.Fatalf("at look %d: %v", look, err)
		}
	}
	err := f.diagnose(views, quorum)
	if err == nil || !strings.Contains(err.Error(), "cp-2 (192.0.2.12)") {
		t.Errorf("not named: %v", err)
	}
}

func TestTwoEtcdsUnderOnePKIAreNamed(t *testing.T) {
	nodes, views := threeViews()
	views[2].members = []*machine.EtcdMember{{Id: 7, Hostname: "cp-3", PeerUrls: []string{"https://192.0.2.13:2380"}}}
	views[2].status = &machine.EtcdMemberStatus{MemberId: 7, Leader: 7}
	f := &bootstrapper{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
	var err error
	for range manyLooks {
		err = f.diagnose(views, quorumOf(nodes, views))
	}
	if err == nil || !strings.Contains(err.Error(), "cp-3 (192.0.2.13)") {
		t.Errorf("not named: %v", err)
	}
}

func TestNobodyBootstrapsBesideAnEtcdThatMayComeBack(t *testing.T) {
	nodes, _ := threeViews()
	empty := view{state: "Preparing", data: dataEmpty}
	for name, c := range map[string]struct {
		others view
		fresh  bool
		made   bool // in this run
		may    bool
	}{
		"all are empty":                           {others: empty, may: true},
		"the others were in maintenance mode":     {others: view{err: errSilent}, fresh: true, may: true},
		"the others do not answer":                {others: view{err: errSilent}},
		"the others are still made":               {others: view{err: errSilent}, made: true, may: true},
		"the others were made and hold data":      {others: view{state: "Preparing", data: dataFull}, made: true},
		"the others hold data and are not up yet": {others: view{state: "Preparing", data: dataFull}},
		"the others' data is not known yet":       {others: view{state: "Preparing"}},
		"the others run":                          {others: view{state: running, data: dataFull}},
		"the others were blank and hold data now": {others: view{state: "Preparing", data: dataFull}, fresh: true},
	} {
		f := &bootstrapper{run: &run{Access: &Access{}, progress: map[string]progress{}}, nodes: nodes}
		if c.made {
			f.options.Made = func(context.Context, string) error { return nil }
		}
		for _, n := range nodes {
			f.progress[n.Name] = progress{fresh: c.fresh}
		}
		for at := range nodes { // whichever of them is ready
			views := []view{c.others, c.others, c.others}
			views[at] = empty
			if got := f.candidate(views); (got >= 0) != c.may {
				t.Errorf("%s: %d", name, got)
			}
		}
	}
}

func TestTheControlPlaneThatIsReadyFirstIsBootstrapped(t *testing.T) {
	nodes, _ := threeViews()
	empty, silent, starting := view{state: "Preparing", data: dataEmpty}, view{err: errSilent}, view{state: "Preparing"}
	f := &bootstrapper{run: &run{Access: &Access{}, progress: map[string]progress{}}, nodes: nodes}
	for _, n := range nodes {
		f.progress[n.Name] = progress{fresh: true}
	}
	for _, c := range []struct {
		views []view
		want  int
	}{
		{[]view{empty, empty, empty}, 0},
		{[]view{silent, empty, empty}, 1},
		{[]view{starting, silent, empty}, 2},
		{[]view{silent, starting, {}}, -1},
	} {
		if got := f.candidate(c.views); got != c.want {
			t.Errorf("of %v it is %d, want %d", c.views, got, c.want)
		}
	}
}

func TestOnlyTheControlPlaneThatWasCalledIsCalledAgain(t *testing.T) {
	nodes, _ := threeViews()
	empty := view{state: preparing, data: dataEmpty, revision: "as before"}
	for name, c := range map[string]struct {
		second view
		since  time.Duration
		phase  bootstrapPhase
		want   int
	}{
		"its call had no effect":               {second: empty, since: time.Minute, phase: bootstrapCalled, want: 1},
		"its call may have an effect soon":     {second: empty, since: time.Second, phase: bootstrapCalled, want: -1},
		"its answer is lost":                   {second: empty, phase: bootstrapUnanswered, want: 1},
		"it is bootstrapped":                   {second: empty, since: time.Minute, phase: bootstrapUnderWay, want: -1},
		"it waits for what it needs":           {second: view{state: "Waiting", data: dataEmpty, revision: "as before"}, since: time.Minute, phase: bootstrapUnderWay, want: -1},
		"it was bootstrapped and started over": {second: view{state: preparing, data: dataEmpty, revision: "anew"}, since: time.Minute, phase: bootstrapUnderWay, want: 1},
		"it was bootstrapped and failed":       {second: view{state: "Failed", data: dataEmpty, revision: "as before"}, since: time.Minute, phase: bootstrapUnderWay, want: 1},
		"it has only just stopped for that":    {second: view{state: "Finished", data: dataEmpty, revision: "as before"}, since: time.Second, phase: bootstrapUnderWay, want: -1},
		"its call was cut and has stopped it":  {second: view{state: "Finished", data: dataEmpty, revision: "anew"}, phase: bootstrapUnanswered, want: 1},
		"it does not answer any more":          {second: view{err: errSilent}, since: time.Minute, phase: bootstrapCalled, want: -1},
	} {
		f := &bootstrapper{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
		for _, n := range nodes {
			f.progress[n.Name] = progress{fresh: true}
		}
		f.reached(1, c.phase)
		f.since, f.revision = time.Now().Add(-c.since), empty.revision
		if got := f.candidate([]view{empty, c.second, empty}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A clock that is not in step keeps etcd from being begun with, of a founded cluster as well, and NTP takes minutes where the first server is dead.
func TestAControlPlaneThatWaitsForItsClockIsNotGivenUpEarly(t *testing.T) {
	for name, c := range map[string]struct {
		second view
		since  time.Duration
		want   string // "" for none
	}{
		"its clock, for minutes":   {view{state: "Waiting"}, 5 * time.Minute, ""},
		"its clock, for too long":  {view{state: "Waiting"}, 11 * time.Minute, "for 10m0s, last seen: etcd waits for what it needs, such as a clock that is in step"},
		"nothing that it says":     {view{state: "Finished"}, 5 * time.Minute, "last seen: etcd is Finished for 3m0s"},
		"its image, for some time": {view{state: preparing, data: dataEmpty}, 5 * time.Minute, ""},
	} {
		nodes, views := threeViews()
		views[1] = c.second
		began := time.Now().Add(-c.since)
		f := &bootstrapper{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes, founded: began}
		for _, n := range nodes {
			f.progress[n.Name] = progress{fresh: true, stage: machineRunning, since: began}
		}
		err := f.late(views, quorumOf(nodes, views))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cp-2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection that breaks can have taken the call with it, or only the answer: Talos is asked which before anybody is called again.
func TestACallWhoseAnswerIsLostMayHaveWorked(t *testing.T) {
	nodes, _ := threeViews()
	var err error
	if nodes[1].client, err = (&node{asked: &atomic.Bool{}, pin: &pin{}}).insecureClient("127.0.0.1:1"); err != nil { // nobody listens there
		t.Fatal(err)
	}
	defer func() { _ = nodes[1].client.Close() }()
	f := &bootstrapper{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
	empty := view{state: preparing, data: dataEmpty}
	if err := f.bootstrap(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	views := []view{empty, empty, empty}
	if got := f.candidate(views); got != 1 || !f.underWay(t.Context(), views) || f.bootstraps != 0 {
		t.Errorf("%d may be bootstrapped, after %d calls that were accepted", got, f.bootstraps)
	}
}

var errSilent = &SilentError{}

func TestEtcdWithoutAMemberHoldsWhereTheOthersHaveAQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func([]view)
		want  string // "": it holds
	}{
		"all are well":             {func([]view) {}, ""},
		"the one that goes is not": {func(v []view) { v[2] = view{err: errors.New("away")} }, ""},
		"another one is not":       {func(v []view) { v[0] = view{err: errors.New("away")} }, "etcd would have 1 of 2 members healthy, and needs 2 for a quorum"},
		"it is the last":           {func(v []view) { everywhere(v, v[0].members[2:]) }, "etcd would have 0 of 0 members healthy, and needs 1"},
	} {
		nodes, views := threeViews()
		c.spoil(views)
		without := quorumOf(nodes, views).Without("cp-3")
		if without.Member == nil || without.Member.Name != "cp-3" {
			t.Errorf("%s: %+v", name, without)
		}
		if err := without.Holds(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nodes, views := threeViews()
	if without := quorumOf(nodes, views).Without("cp-4"); without.Member != nil || without.Healthy != 3 {
		t.Errorf("%+v", without)
	}
	// A member whose node is in no description any more is known by its name.
	if without := quorumOf(nodes[:2], views[:2]).Without("cp-3"); without.Member == nil {
		t.Errorf("%+v", without)
	}
}
