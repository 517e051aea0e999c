package talos

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"tazlab.net/castle/ci/cluster"
)

// threeViews is a healthy etcd of three, as its members report it.
func threeViews() ([]*node, []view) {
	var nodes []*node
	var list []*machine.EtcdMember
	for i, address := range []string{"192.0.2.11", "192.0.2.12", "192.0.2.13"} {
		name := "cp-" + string(rune('1'+i))
		nodes = append(nodes, &node{Node: cluster.Node{Name: name, Role: cluster.RoleControlPlane, Address: netip.MustParseAddr(address)}})
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

func TestAQuorumIsCompleteOnlyWithoutAnyProblem(t *testing.T) {
	nodes, views := threeViews()
	if quorum := judge(nodes, views); !quorum.Complete() || quorum.Leader != "cp-2" {
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
		if quorum := judge(nodes, views); quorum.Complete() || !strings.Contains(quorum.String(), name) {
			t.Errorf("%s: %s", name, quorum)
		}
	}
}

func TestMembersThatMustNotBeAreNamedWhenTheyStay(t *testing.T) {
	nodes, views := threeViews()
	everywhere(views, append(views[0].members, &machine.EtcdMember{Id: 9, PeerUrls: views[0].members[1].PeerUrls}))
	f := &former{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
	quorum := judge(nodes, views)
	for look := 1; look < strangerLooks; look++ {
		if err := f.ghosts(views, quorum); err != nil {
			t.Fatalf("at look %d: %v", look, err)
		}
	}
	err := f.ghosts(views, quorum)
	if err == nil || !strings.Contains(err.Error(), "cp-2 (192.0.2.12)") {
		t.Errorf("not named: %v", err)
	}
}

func TestTwoEtcdsUnderOnePKIAreNamed(t *testing.T) {
	nodes, views := threeViews()
	views[2].members = []*machine.EtcdMember{{Id: 7, Hostname: "cp-3", PeerUrls: []string{"https://192.0.2.13:2380"}}}
	views[2].status = &machine.EtcdMemberStatus{MemberId: 7, Leader: 7}
	f := &former{run: &run{Access: &Access{options: Options{}.withDefaults()}, progress: map[string]progress{}}, nodes: nodes}
	var err error
	for range strangerLooks {
		err = f.ghosts(views, judge(nodes, views))
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
		may    bool
	}{
		"all are empty":                           {others: empty, may: true},
		"the others were in maintenance mode":     {others: view{err: errSilent}, fresh: true, may: true},
		"the others do not answer":                {others: view{err: errSilent}},
		"the others hold data and are not up yet": {others: view{state: "Preparing", data: dataFull}},
		"the others' data is not known yet":       {others: view{state: "Preparing"}},
		"the others run":                          {others: view{state: running, data: dataFull}},
		"the others were blank and hold data now": {others: view{state: "Preparing", data: dataFull}, fresh: true},
	} {
		f := &former{run: &run{progress: map[string]progress{}}, nodes: nodes}
		for _, n := range nodes {
			f.progress[n.Name] = progress{fresh: c.fresh}
		}
		if got := f.mayBootstrap([]view{empty, c.others, c.others}); got != c.may {
			t.Errorf("%s: %v", name, got)
		}
	}
}

var errSilent = &SilentError{}
