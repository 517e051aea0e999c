package talos

//lint:file-ignore SA1019 Talos itself compares these fields of its configuration, which it calls deprecated.

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
)

// restart tells whether a change takes effect only after a restart: CanApplyImmediate of siderolabs/talos 1.13,
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_runtime.go. Further documents need none. What it says holds what differs, secrets
// as well.
func restart(from, to *settings) error {
	old, wanted := from.provider.RawV1Alpha1(), to.provider.RawV1Alpha1().DeepCopy()
	wanted.ConfigDebug, wanted.ClusterConfig = old.ConfigDebug, old.ClusterConfig
	m, w := old.MachineConfig, wanted.MachineConfig
	w.MachineCA, w.MachineAcceptedCAs, w.MachineCertSANs, w.MachineTime, w.MachineInstall = m.MachineCA, m.MachineAcceptedCAs, m.MachineCertSANs, m.MachineTime, m.MachineInstall
	w.MachineNetwork, w.MachineNodeLabels, w.MachineNodeAnnotations, w.MachineNodeTaints = m.MachineNetwork, m.MachineNodeLabels, m.MachineNodeAnnotations, m.MachineNodeTaints
	w.MachineSysctls, w.MachineSysfs, w.MachineLogging, w.MachineControlPlane = m.MachineSysctls, m.MachineSysfs, m.MachineLogging, m.MachineControlPlane
	w.MachineKubelet, w.MachinePods, w.MachineKernel, w.MachineRegistries = m.MachineKubelet, m.MachinePods, m.MachineKernel, m.MachineRegistries
	w.MachineSeccompProfiles = m.MachineSeccompProfiles
	if f, g := m.MachineFeatures, w.MachineFeatures; f != nil && g != nil {
		g.KubernetesTalosAPIAccessConfig, g.KubePrismSupport, g.HostDNSSupport = f.KubernetesTalosAPIAccessConfig, f.KubePrismSupport, f.HostDNSSupport
		g.ImageCacheSupport, g.FeatureNodeAddressSortAlgorithm = f.ImageCacheSupport, f.FeatureNodeAddressSortAlgorithm
	}
	switch {
	case !reflect.DeepEqual(old, wanted):
		difference, err := configdiff.DiffConfigs(container.NewV1Alpha1(old), container.NewV1Alpha1(wanted))
		if err != nil {
			return fmt.Errorf("error calculating diff: %w", err)
		}
		return fmt.Errorf("this config change can't be applied in immediate mode\ndiff:\n%s", difference)
	case from.address != to.address:
		return errors.New("this config change can't be applied in immediate mode: the simulated machine's address")
	default:
		return nil
	}
}
