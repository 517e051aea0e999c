package machineconfig

// PauseImage is what containerd starts for a pod before its containers, so that each node has it: it does nothing, as little user. It is that of
// containerd 2.2, which Talos 1.13 and the later versions of 1.12 have (DefaultSandboxImage in pkg/images/list.go of Talos v1.13.9).
const PauseImage = "registry.k8s.io/pause:3.10.1"
