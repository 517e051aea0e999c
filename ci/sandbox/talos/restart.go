package talos

//lint:file-ignore SA1019 Talos itself compares these fields of its configuration, which it calls deprecated.

import (
	"errors"
	"reflect"
)

// restart tells whether a change takes effect only after a restart: CanApplyImmediate of siderolabs/talos,
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_runtime.go. Further documents need none.
func restart(from, to *settings) error {
	old, wanted := from.provider.RawV1Alpha1().DeepCopy(), to.provider.RawV1Alpha1()
	old.ClusterConfig, old.ConfigDebug = wanted.ClusterConfig, wanted.ConfigDebug
	m, w := old.MachineConfig, wanted.MachineConfig
	m.MachineTime, m.MachineAcceptedCAs, m.MachineCertSANs, m.MachineInstall = w.MachineTime, w.MachineAcceptedCAs, w.MachineCertSANs, w.MachineInstall
	m.MachineNetwork, m.MachineNodeLabels, m.MachineNodeAnnotations, m.MachineNodeTaints = w.MachineNetwork, w.MachineNodeLabels, w.MachineNodeAnnotations, w.MachineNodeTaints
	m.MachineSysctls, m.MachineSysfs, m.MachineLogging, m.MachineControlPlane = w.MachineSysctls, w.MachineSysfs, w.MachineLogging, w.MachineControlPlane
	m.MachineKubelet, m.MachinePods, m.MachineKernel, m.MachineRegistries = w.MachineKubelet, w.MachinePods, w.MachineKernel, w.MachineRegistries
	switch {
	case !reflect.DeepEqual(old, wanted):
		return errors.New("this config change can't be applied in immediate mode")
	case from.address != to.address:
		return errors.New("this config change can't be applied in immediate mode: the simulated machine's address")
	default:
		return nil
	}
}
