package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"tazlab.net/castle/ci/cluster/config"
)

// Quorum is one observation of etcd.
type Quorum struct {
	Wanted   int      // control planes of the description
	Members  []Member // etcd's own list, in the order of the description
	Leader   string   // node that all members name as their leader; "" where they do not agree
	Problems []string // what is missing to Wanted healthy members with one leader, one line each
	Alarms   []error  // each an *AlarmError; they stay until somebody clears them
}

// Member is one entry of etcd's member list.
type Member struct {
	ID      uint64
	Name    string     // as etcd knows it: the machine's hostname
	Address netip.Addr // of its peer URL
	Node    string     // declared node at that address; "" where there is none
	Learner bool       // receives the log, does not vote yet
	Healthy bool       // it answered for itself: a voter, without alarms, that knows the leader
}

// Complete tells that every control plane is a healthy voting member and all follow one leader.
func (q Quorum) Complete() bool {
	return len(q.Problems) == 0 && len(q.Members) == q.Wanted && q.Leader != ""
}

// Healthy is the number of healthy members.
func (q Quorum) Healthy() int {
	n := 0
	for _, member := range q.Members {
		if member.Healthy {
			n++
		}
	}
	return n
}

func (q Quorum) String() string {
	text := fmt.Sprintf("%d of %d etcd members healthy", q.Healthy(), q.Wanted)
	if q.Leader != "" {
		text += ", leader " + q.Leader
	} else {
		text += ", no leader"
	}
	if len(q.Problems) > 0 {
		text += " (" + strings.Join(q.Problems, "; ") + ")"
	}
	return text
}

// EtcdQuorum looks at etcd once, on all control planes in parallel; it takes at most some seconds, usually milliseconds. The
// error says that no control plane answered; everything else stands in the Quorum.
func (a *Access) EtcdQuorum(ctx context.Context) (Quorum, error) {
	views := observe(a.controlPlanes(), func(n *node) view { return n.etcd(ctx, true) })
	quorum := quorumOf(a.controlPlanes(), views)
	var failures []error
	for _, view := range views {
		if view.err == nil {
			return quorum, nil
		}
		failures = append(failures, view.err)
	}
	return quorum, fmt.Errorf("no control plane of %s answers: %w", a.cluster.Name, errors.Join(failures...))
}

// dataDir is what is known about a control plane's etcd data directory.
type dataDir int

const (
	dataUnknown dataDir = iota
	dataEmpty           // this machine has never been a member
	dataFull            // it is or was a member of some cluster
)

// view is one control plane's etcd as that machine reports it.
type view struct {
	err       error  // the machine did not answer
	state     string // of the etcd service, "Preparing" or "Running"; "" before the machine has started services
	revision  string // changes with every change of the service
	restarted bool   // the service was begun anew after the machine's start, as by a bootstrap
	data      dataDir
	members   []*machine.EtcdMember
	status    *machine.EtcdMemberStatus
	refused   error // why the running etcd did not give members or status
}

const (
	etcdService = "etcd"
	running     = "Running"
	waits       = "Waiting"   // for the clock and what else is a condition
	preparing   = "Preparing" // pulls its image, and then waits to join where it was not bootstrapped
)

// observe looks at control planes in parallel.
func observe(nodes []*node, look func(*node) view) []view {
	views := make([]view, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		wait.Go(func() { views[i] = look(n) })
	}
	wait.Wait()
	return views
}

// etcd looks at one control plane; alone is for a look that no other follows.
func (n *node) etcd(ctx context.Context, alone bool) (v view) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := n.client.ServiceList
	if alone {
		list = func(ctx context.Context, _ ...grpc.CallOption) (*machine.ServiceListResponse, error) {
			return current(ctx, n.client, n.client.ServiceList)
		}
	}
	response, err := list(ctx)
	if err != nil {
		v.err = fmt.Errorf("%s: %w", n.Name, err)
		return v
	}
	begun := map[string]time.Time{}
	for _, message := range response.GetMessages() {
		for _, service := range message.GetServices() {
			if events := service.GetEvents().GetEvents(); len(events) > 0 {
				begun[service.GetId()] = events[0].GetTs().AsTime()
			}
			if service.GetId() == etcdService {
				v.state, v.revision = service.GetState(), revision(service)
			}
		}
	}
	v.restarted = restarted(begun)
	switch v.state {
	case "":
	case running:
		v.data = dataFull
		v.members, v.status, v.refused = n.membership(ctx)
	default:
		v.data = n.dataDir(ctx)
	}
	return v
}

func (n *node) membership(ctx context.Context) ([]*machine.EtcdMember, *machine.EtcdMemberStatus, error) {
	status, err := n.client.EtcdStatus(ctx)
	if err != nil {
		return nil, nil, err
	}
	var own *machine.EtcdMemberStatus
	for _, message := range status.GetMessages() {
		own = message.GetMemberStatus()
	}
	list, err := n.client.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return nil, own, err
	}
	var members []*machine.EtcdMember
	for _, message := range list.GetMessages() {
		members = append(members, message.GetMembers()...)
	}
	return members, own, nil
}

// dataDir lists etcd's data directory. Talos makes it only when it prepares etcd, so that its absence says nothing.
func (n *node) dataDir(ctx context.Context) dataDir {
	stream, err := n.client.LS(ctx, &machine.ListRequest{Root: constants.EtcdDataPath})
	if err != nil {
		return dataUnknown
	}
	seen := dataUnknown
	for {
		file, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return seen
		case err != nil, file.GetError() != "":
			return dataUnknown
		case strings.TrimSuffix(file.GetName(), "/") == constants.EtcdDataPath:
			seen = max(seen, dataEmpty) // the directory itself
		default:
			seen = dataFull
		}
	}
}

// restarted tells by when services were begun whether etcd was once more. Talos begins it and trustd in the same moment of a machine's start,
// and loads it anew where it is bootstrapped, a second after that at the earliest on real nodes (StartAllServices in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_sequencer_tasks.go and BootstrapEtcd in internal/app/machined/pkg/system/services/etcd.go
// of Talos 1.13).
func restarted(begun map[string]time.Time) bool {
	etcd, trustd := begun[etcdService], begun["trustd"]
	return !etcd.IsZero() && !trustd.IsZero() && etcd.Sub(trustd) > 500*time.Millisecond
}

// revision is of the service's state and its last event.
func revision(service *machine.ServiceInfo) string {
	text := service.GetState()
	if events := service.GetEvents().GetEvents(); len(events) > 0 {
		last := events[len(events)-1]
		text += fmt.Sprint(len(events), last.GetMsg(), last.GetTs().AsTime().UnixNano())
	}
	return text
}

// quorumOf makes one picture of what the control planes said.
func quorumOf(nodes []*node, views []view) Quorum {
	quorum := Quorum{Wanted: len(nodes)}
	problem := func(format string, arguments ...any) {
		quorum.Problems = append(quorum.Problems, fmt.Sprintf(format, arguments...))
	}
	quorum.Members = members(nodes, views)

	leaders := map[uint64]bool{}
	for i, n := range nodes {
		v := views[i]
		switch {
		case v.err != nil:
			problem("%s does not answer: %s", n.Name, brief(unwrapped(v.err)))
			continue
		case v.state == "":
			problem("%s has not started etcd", n.Name)
			continue
		case v.state != running:
			problem("etcd of %s is %s", n.Name, v.state)
			continue
		case v.status == nil:
			problem("etcd of %s gives no status: %v", n.Name, v.refused)
			continue
		}
		leaders[v.status.GetLeader()] = true
		at := slices.IndexFunc(quorum.Members, func(m Member) bool { return m.ID == v.status.GetMemberId() })
		switch {
		case v.status.GetLeader() == 0:
			problem("etcd of %s sees no leader", n.Name)
		case at < 0:
			problem("etcd of %s is not in the member list", n.Name)
		case v.status.GetIsLearner():
			problem("etcd of %s is still a learner", n.Name)
		case len(v.status.GetErrors()) > 0:
			problem("etcd of %s reports %s", n.Name, strings.Join(v.status.GetErrors(), ", "))
		default:
			quorum.Members[at].Healthy = true
		}
	}
	if len(leaders) == 1 {
		for _, member := range quorum.Members {
			if leaders[member.ID] {
				quorum.Leader = member.Node
			}
		}
	} else if len(leaders) > 1 {
		problem("the members name %d different leaders", len(leaders))
	}
	quorum.Alarms = alarms(quorum.Members, views)
	for _, ghost := range strangers(quorum.Members) {
		problem("%s", ghost.Seen)
	}
	for _, n := range nodes {
		if len(quorum.Members) > 0 && !slices.ContainsFunc(quorum.Members, func(m Member) bool { return m.Node == n.Name }) {
			problem("%s is no member", n.Name)
		}
	}
	return quorum
}

// members is the member list of the control plane that is closest to the leader: its own, else any.
func members(nodes []*node, views []view) []Member {
	var list []*machine.EtcdMember
	for _, v := range views {
		if len(v.members) > 0 && (list == nil || v.status.GetLeader() == v.status.GetMemberId()) {
			list = v.members
		}
	}
	declared := map[netip.Addr]config.Node{}
	order := map[netip.Addr]int{}
	for i, n := range nodes {
		declared[n.Address], order[n.Address] = n.Node, i
	}
	var all []Member
	for _, m := range list {
		member := Member{ID: m.GetId(), Name: m.GetHostname(), Learner: m.GetIsLearner(), Address: host(m.GetPeerUrls())}
		member.Node = declared[member.Address].Name
		all = append(all, member)
	}
	slices.SortStableFunc(all, func(x, y Member) int {
		place := func(m Member) int {
			if at, known := order[m.Address]; known {
				return at
			}
			return len(nodes)
		}
		return place(x) - place(y)
	})
	return all
}

// alarmText is how a member's status tells of an alarm, among its errors: AlarmMember's text, which
// server/etcdserver/api/v3rpc/maintenance.go of etcd 3.6 puts there. Each member tells of the alarms of all.
var alarmText = regexp.MustCompile(`^memberID:(\d+) alarm:(\w+)`)

// alarms are those that any member tells of, each once.
func alarms(members []Member, views []view) []error {
	var all []error
	told := map[string]bool{}
	for _, v := range views {
		for _, text := range v.status.GetErrors() {
			found := alarmText.FindStringSubmatch(text)
			if found == nil || told[found[0]] {
				continue
			}
			told[found[0]] = true
			alarm := &AlarmError{Alarm: found[2]}
			for _, member := range members {
				if strconv.FormatUint(member.ID, 10) == found[1] {
					alarm.Node, alarm.Address = member.Node, member.Address
				}
			}
			all = append(all, alarm)
		}
	}
	return all
}

// strangers are members that must not be: a second one for an address, or one at an address that no node declares.
func strangers(members []Member) []*GhostError {
	var ghosts []*GhostError
	seen := map[netip.Addr]Member{}
	for _, member := range members {
		if first, twice := seen[member.Address]; twice {
			ghosts = append(ghosts, &GhostError{Node: member.Node, Address: member.Address,
				Seen: fmt.Sprintf("etcd has two members for its address, %x and %x", first.ID, member.ID)})
		} else if member.Node == "" {
			ghosts = append(ghosts, &GhostError{Address: member.Address,
				Seen: fmt.Sprintf("member %x (%s) stands at %s, which no control plane declares", member.ID, member.Name, member.Address)})
		}
		seen[member.Address] = member
	}
	return ghosts
}

func host(urls []string) netip.Addr {
	for _, text := range urls {
		if parsed, err := url.Parse(text); err == nil {
			if address, err := netip.ParseAddr(parsed.Hostname()); err == nil {
				return address
			}
		}
	}
	return netip.Addr{}
}

// unwrapped is the short form of a gRPC error: its own text without the code's prefix.
func unwrapped(err error) string {
	if status := client.Status(err); status != nil && status.Code() != codes.OK {
		return status.Message()
	}
	return err.Error()
}
