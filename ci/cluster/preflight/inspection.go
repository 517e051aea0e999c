package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos"
)

// inspection is a cluster as the checks see it. What several of them have to know is found out by the first that asks.
type inspection struct {
	cluster   *run.Cluster
	described *config.Cluster
	asked     Asked
	limit     time.Duration // of each check

	opened func() *secrets.Opened // what all sources hold; nil where create reads them
	values func() *secrets.Values // the same as values, nil where there are none
	files  func() (*secrets.Values, error)

	certificate func() error
	api         func() api
	lacks       func() (lacking, error)
	vms         func() (machines, error)
	standing    func() ([]talos.NodeStatus, error) // the machines, where castle makes none
	probe       func(ctx context.Context, address netip.Addr, port int) (accepted, there bool)
	free        func(folder string) (bytes uint64, err error)
}

// api is the way to Proxmox's.
type api struct {
	*hypervisor.Hypervisor
	token   string // its name: user@realm!name
	version string
	err     error  // why it does not answer
	why     string // why nothing can be asked: one line that names the row to look at; empty where it can
}

// lacking is what the token must not do.
type lacking struct {
	list []hypervisor.Lack
	all  bool // it has no privilege at all
}

// has tells that a privilege is missing somewhere.
func (l lacking) has(privilege string) bool {
	for _, lack := range l.list {
		if lack.Privilege == privilege {
			return true
		}
	}
	return false
}

// machines are the VMs that Proxmox has.
type machines struct {
	all []hypervisor.VM
	// missing are the described nodes whose VMs are not there; own are the cluster's VMs by node.
	missing []config.Node
	own     map[string]hypervisor.VM
}

// running tells whether a VM of the cluster's runs, of a role or, where that is empty, of any.
func (m machines) running(described *config.Cluster, role string) bool {
	for _, node := range described.Nodes {
		if m.own[node.Name].Status == hypervisor.Running && (role == "" || node.Role == role) {
			return true
		}
	}
	return false
}

func newInspection(ctx context.Context, cluster *run.Cluster, limit time.Duration) *inspection {
	s := &inspection{cluster: cluster, described: cluster.Description, limit: limit, probe: probe, free: free}
	limited := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, limit) }
	s.files = sync.OnceValues(func() (*secrets.Values, error) {
		return secrets.FromFiles(s.described, secrets.Inputs{Folder: cluster.Folder, AgeKey: cluster.AgeKey})
	})
	s.certificate = sync.OnceValue(func() error {
		ctx, cancel := limited()
		defer cancel()
		return cluster.CheckCertificate(ctx)
	})
	s.api = sync.OnceValue(func() api {
		ctx, cancel := limited()
		defer cancel()
		return s.open(ctx)
	})
	s.lacks = sync.OnceValues(func() (lacking, error) {
		ctx, cancel := limited()
		defer cancel()
		list, all, err := s.api().Lacking(ctx)
		return lacking{list, all}, err
	})
	s.standing = sync.OnceValues(func() ([]talos.NodeStatus, error) {
		ctx, cancel := limited()
		defer cancel()
		return s.lookAtMachines(ctx)
	})
	s.vms = sync.OnceValues(func() (machines, error) {
		ctx, cancel := limited()
		defer cancel()
		return s.look(ctx)
	})
	return s
}

// openSources has the secrets read here, where no create does it.
func (s *inspection) openSources(ctx context.Context) {
	s.opened = sync.OnceValue(func() *secrets.Opened {
		return secrets.Open(ctx, s.described, secrets.Inputs{Folder: s.cluster.Folder, AgeKey: s.cluster.AgeKey, Deadline: s.limit})
	})
	s.values = func() *secrets.Values { return s.opened().Values }
}

// close gives the connections back.
func (s *inspection) close() {
	if machines := s.api().Hypervisor; machines != nil {
		machines.Close()
	}
}

// seeRow says where to look.
func seeRow(what, group, name string) string { return fmt.Sprintf("%s (see %s %s)", what, group, name) }

// open opens Proxmox's API, and asks it for its version: the least that a token may. A host that is restarting is asked again.
func (s *inspection) open(ctx context.Context) api {
	if !s.described.MakesMachines() {
		return api{why: "castle makes no machines on platform " + s.described.Platform}
	}
	if err := s.certificate(); err != nil {
		return api{err: err, why: seeRow("Proxmox does not answer, or its certificate is not accepted", groupProxmox, "certificate")}
	}
	values, err := s.files()
	if err != nil {
		return api{err: err, why: seeRow(secrets.ProxmoxAPIToken+" cannot be read", groupSecrets, "SOPS files")}
	}
	text, has := values.Get(secrets.ProxmoxAPIToken)
	if !has {
		return api{why: seeRow(secrets.ProxmoxAPIToken+" is missing", groupSecrets, "complete")}
	}
	opened := api{Hypervisor: s.cluster.Proxmox(values), token: tokenName(text)}
	for {
		opened.version, opened.err = opened.Version(ctx)
		if opened.err == nil || hypervisor.Refused(opened.err) {
			break
		}
		select {
		case <-time.After(retryEvery):
			continue
		case <-ctx.Done():
		}
		break
	}
	if opened.err != nil {
		opened.why = seeRow("Proxmox does not take the token", groupProxmox, "token")
	}
	return opened
}

// retryEvery is how soon a request is made again that Proxmox could not answer.
const retryEvery = 300 * time.Millisecond

// look lists the VMs.
func (s *inspection) look(ctx context.Context) (machines, error) {
	all, err := s.api().All(ctx)
	if err != nil {
		return machines{}, err
	}
	found := machines{all: all, own: map[string]hypervisor.VM{}}
	for _, node := range s.described.Nodes {
		there := false
		for _, vm := range all {
			if vm.ID != node.VMID {
				continue
			}
			there = true
			if vm.Ours {
				found.own[node.Name] = vm
			}
		}
		if !there {
			found.missing = append(found.missing, node)
		}
	}
	return found, nil
}

// seen gives the VMs, or why they are not known.
func (s *inspection) seen() (machines, []finding) {
	if why := s.api().why; why != "" {
		return machines{}, notChecked("%s", why)
	}
	lacks, err := s.lacks()
	if err != nil { // Proxmox lists what the token sees, and nothing of the rest
		return machines{}, notChecked("whether the token sees all of these VMs is not known: %v", err)
	}
	if lacks.has("VM.Audit") {
		return machines{}, notChecked("%s", seeRow("the token does not see all of these VMs", groupProxmox, "privileges"))
	}
	found, err := s.vms()
	if err != nil {
		return machines{}, notChecked("%v", err)
	}
	return found, nil
}
