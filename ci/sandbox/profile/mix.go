package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
)

// Mix is some faults at once, and what must happen to whoever meets them in a destroy and then a create of a whole cluster.
type Mix struct {
	Faults []string `json:"faults"` // as ParseFaults reads them, sorted
	// EndsCreate and EndsDestroy say that no such call can end well as long as the faults are there.
	EndsCreate  bool `json:"endsCreate"`
	EndsDestroy bool `json:"endsDestroy"`
	// Anew says that what a create leaves then is nothing to go on from: it has to be destroyed first.
	Anew bool `json:"anew"`
}

// mixable is a fault that can be mixed with others. Its value is chosen at random.
type mixable struct {
	name  string
	value func(*rand.Rand, *config.Cluster) string
	// As in Mix.
	endsCreate, endsDestroy, anew bool
}

var mixables = []mixable{
	{name: WebhookLate, value: seconds(6)},
	{name: WebhookLies, value: seconds(6)},
	{name: BootstrapNoop, value: times(3)},
	{name: TimeLate, value: seconds(6)},
	{name: BootstrapSlow, value: seconds(6)},
	{name: VIPFlaps, value: seconds(5)},
	{name: APIRestarts, value: seconds(5)},
	{name: APIEnds, value: seconds(10)},
	{name: KubeletRestarts, value: seconds(20)},
	{name: ProxmoxMoods, value: times(3)},
	{name: StorageLock, value: times(3)},
	{name: InfisicalMoods, value: times(2)},
	{name: Uplink, value: fixed("100Mbit")},
	{name: HubLimit, value: seconds(20)},
	{name: CloneFails, value: ofNodes, endsCreate: true},
	{name: DHCPDrift, value: ofNodes, endsCreate: true},
	{name: WrongTemplate, value: fixed("iscsi-tools"), endsCreate: true, anew: true},
	{name: Ghosts, value: ofControlPlanes, endsCreate: true, anew: true},
	{name: EtcdAlarm, value: ofControlPlanes, endsCreate: true, anew: true},
	{name: SecretMissing, value: fixed("GITOPS_TOKEN"), endsCreate: true, endsDestroy: true},
	{name: SecretHidden, value: fixed("GITOPS_TOKEN"), endsCreate: true, endsDestroy: true},
	{name: InfisicalPaths, value: fixed(""), endsCreate: true, endsDestroy: true},
	// The cluster of a mix was created before, so what opens it is kept already, and there is nothing to change.
	{name: InfisicalApproval, value: fixed("")},
	{name: FluxNoSecret, value: fixed(""), endsCreate: true},
	{name: PrivilegeMissing, value: fixed("VM.Clone"), endsCreate: true},
	{name: StorageFull, value: func(_ *rand.Rand, cluster *config.Cluster) string { return cluster.Proxmox.Storage }, endsCreate: true},
	{name: ClockSkew, value: fixed("10m"), endsCreate: true},
	{name: AddressTaken, value: func(random *rand.Rand, cluster *config.Cluster) string {
		return cluster.Nodes[random.IntN(len(cluster.Nodes))].Address.String()
	}, endsCreate: true},
}

// alone are the faults that no mix has: one ends a create only when the whole time of a gate has gone by, and what the other leaves behind is
// in the way of every later create until a person removes it.
var alone = []string{ImageMissing, DiskStays}

func seconds(most int) func(*rand.Rand, *config.Cluster) string {
	return func(random *rand.Rand, _ *config.Cluster) string { return fmt.Sprintf("%ds", 1+random.IntN(most)) }
}

func times(most int) func(*rand.Rand, *config.Cluster) string {
	return func(random *rand.Rand, _ *config.Cluster) string { return strconv.Itoa(1 + random.IntN(most)) }
}

func fixed(value string) func(*rand.Rand, *config.Cluster) string {
	return func(*rand.Rand, *config.Cluster) string { return value }
}

func ofNodes(random *rand.Rand, cluster *config.Cluster) string {
	return vm(random, cluster.Nodes)
}

func ofControlPlanes(random *rand.Rand, cluster *config.Cluster) string {
	return vm(random, cluster.ControlPlanes())
}

func vm(random *rand.Rand, nodes []config.Node) string {
	return strconv.Itoa(nodes[random.IntN(len(nodes))].VMID)
}

// NewMix is the mix of a seed for a cluster: two to five faults, of which at most one ends a create, since a second one would never be met.
// In half of all mixes none does, so that as many are outlasted as not.
func NewMix(seed uint64, cluster *config.Cluster) Mix {
	random := rand.New(rand.NewPCG(seed, 1))
	var m Mix
	wanted, mayEnd := 2+random.IntN(4), random.IntN(2) == 0
	for _, i := range random.Perm(len(mixables)) {
		fault := mixables[i]
		if len(m.Faults) == wanted || fault.endsCreate && (m.EndsCreate || !mayEnd) {
			continue
		}
		m.Faults = append(m.Faults, strings.TrimSuffix(fault.name+"="+fault.value(random, cluster), "="))
		m.EndsCreate = m.EndsCreate || fault.endsCreate
		m.EndsDestroy = m.EndsDestroy || fault.endsDestroy
		m.Anew = m.Anew || fault.anew
	}
	slices.Sort(m.Faults)
	return m
}
