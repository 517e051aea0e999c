package talos

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// States of a node.
const (
	IsConfigured  = "configured"  // it has a configuration of this cluster's PKI
	InMaintenance = "maintenance" // it waits for one
	IsGhost       = "ghost"       // it has one of another PKI
	IsSilent      = "silent"      // nobody answers
)

// NodeStatus is one observation of a node.
type NodeStatus struct {
	Name     string
	Role     string
	Address  string
	State    string // one of the above
	Version  string // of Talos, "v1.13.9"; "" where it does not answer
	Services []Service
	Problem  string // why it is not healthy; ""
}

// Healthy tells that the node has this cluster's configuration and all its services run.
func (s NodeStatus) Healthy() bool { return s.Problem == "" }

// Service is a service of Talos on a node.
type Service struct {
	ID      string
	State   string // "Running", "Preparing", "Finished", …
	Healthy bool   // false where it has a health check that fails
}

// Status looks at all nodes once, in parallel, in the order of the description; a node that does not answer is a status, not
// an error.
func (a *Access) Status(ctx context.Context) []NodeStatus {
	all := make([]NodeStatus, len(a.nodes))
	var wait sync.WaitGroup
	for i, n := range a.nodes {
		wait.Go(func() { all[i] = n.status(ctx) })
	}
	wait.Wait()
	return all
}

func (n *node) status(ctx context.Context) NodeStatus {
	status := NodeStatus{Name: n.Name, Role: n.Role, Address: n.Address.String()}
	first := n.client
	if first == nil {
		first = n.insecure
	}
	fresh, cancel := context.WithTimeout(ctx, callTimeout)
	_, _ = current(fresh, first, first.Version) // an old failure to connect is none now; what is seen counts below
	cancel()
	what, seen := n.look(ctx)
	switch what {
	case maintenance:
		status.State, status.Problem = InMaintenance, "waits for its configuration in maintenance mode"
		return status
	case foreign:
		status.State, status.Problem = IsGhost, (&GhostError{Node: n.Name, Address: n.Address, Seen: seen.Error()}).Error()
		return status
	case silent:
		status.State, status.Problem = IsSilent, "does not answer: "+unwrapped(seen)
		return status
	}
	status.State = IsConfigured
	ctx, cancel = context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.services(ctx, &status); err != nil {
		status.Problem = "does not answer: " + unwrapped(err)
	}
	return status
}

func (n *node) services(ctx context.Context, status *NodeStatus) error {
	version, err := n.client.Version(ctx)
	if err != nil {
		return err
	}
	for _, message := range version.GetMessages() {
		status.Version = message.GetVersion().GetTag()
	}
	list, err := n.client.ServiceList(ctx)
	if err != nil {
		return err
	}
	for _, message := range list.GetMessages() {
		for _, info := range message.GetServices() {
			service := Service{ID: info.GetId(), State: info.GetState(), Healthy: well(info)}
			// Talos looks every 20 seconds, and has not seen yet that a learner has become a voter (HealthSettings in
			// internal/app/machined/pkg/system/services/etcd.go of Talos 1.13).
			if service.ID == etcdService && service.State == running && strings.Contains(info.GetHealth().GetLastMessage(), "rpc not supported for learner") {
				service.Healthy = n.votes(ctx)
			}
			status.Services = append(status.Services, service)
			if !service.Healthy && status.Problem == "" {
				status.Problem = fmt.Sprintf("service %s is %s", service.ID, service.State)
				if message := info.GetHealth().GetLastMessage(); message != "" {
					status.Problem += ": " + message
				}
			}
		}
	}
	for _, id := range []string{"apid", "kubelet"} {
		if !status.has(id) && status.Problem == "" {
			status.Problem = "service " + id + " has not started"
		}
	}
	return nil
}

// votes tells that a control plane's etcd is a voter that knows its leader and has nothing to report.
func (n *node) votes(ctx context.Context) bool {
	status, err := n.client.EtcdStatus(ctx)
	if err != nil || len(status.GetMessages()) == 0 {
		return false
	}
	own := status.GetMessages()[0].GetMemberStatus()
	return !own.GetIsLearner() && own.GetLeader() != 0 && len(own.GetErrors()) == 0
}

func (s NodeStatus) has(id string) bool {
	for _, service := range s.Services {
		if service.ID == id {
			return true
		}
	}
	return false
}

// well tells that a service does what it should. One without a health check counts by its state; one that ran to its end is
// well, too.
func well(info *machine.ServiceInfo) bool {
	switch info.GetState() {
	case running:
		return info.GetHealth().GetUnknown() || info.GetHealth().GetHealthy()
	case "Finished", "Skipped":
		return true
	default:
		return false
	}
}
