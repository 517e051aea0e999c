package preflight

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// lookAtMachines asks each machine that castle did not make who it is. Before the cluster has a PKI, one that has any is somebody else's.
func (s *inspection) lookAtMachines(ctx context.Context) ([]talos.NodeStatus, error) {
	var bundle *machineconfig.Bundle
	if values := s.values(); values != nil {
		if text, has := values.Get(secrets.TalosSecrets); has {
			var err error
			if bundle, err = machineconfig.ParseSecrets([]byte(text)); err != nil {
				return nil, err
			}
		}
	}
	machines, err := talos.Dial(s.described, bundle, talos.Options{})
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	return machines.Status(ctx), nil
}

// up tells whether a control plane of the cluster's has its configuration, and whether any machine has.
func (s *inspection) up() (controlPlane, any bool, why []finding) {
	list, err := s.standing()
	if err != nil {
		return false, false, notChecked("%v", err)
	}
	for _, seen := range list {
		configured := seen.State == talos.IsConfigured
		any = any || configured
		controlPlane = controlPlane || configured && seen.Role == config.RoleControlPlane
	}
	return controlPlane, any, nil
}

// machinesStand looks whether each machine that castle does not make is there: in maintenance mode, or with a configuration of the cluster's.
func machinesStand(s *inspection) []finding {
	list, err := s.standing()
	if err != nil {
		return notChecked("%v", err)
	}
	var found []finding
	waiting, ours := 0, 0
	for _, seen := range list {
		switch seen.State {
		case talos.InMaintenance:
			waiting++
		case talos.IsConfigured:
			ours++
		case talos.IsGhost:
			found = append(found, finding{Failed, fmt.Sprintf("the machine of %s at %s is of another cluster: it asks for a client certificate of another authority", seen.Name, seen.Address),
				"wipe its disk and start it from Talos's image, write the address of the right machine into cluster.yaml, or bring the cluster's own TALOS_SECRETS back"})
		default:
			found = append(found, finding{Failed, fmt.Sprintf("nobody answers at %s, the address of %s (port %d)", seen.Address, seen.Name, talosPort),
				"start the machine from Talos's image, and let it have that address: its console shows the one that it has"})
		}
	}
	if found != nil {
		return found
	}
	return ok("%s in maintenance mode, %d with the cluster's configuration", rendering.Count(waiting, "machine"), ours)
}
