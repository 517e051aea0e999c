// Package talos makes Talos machines into a Kubernetes control plane through their API: it gives them their configuration,
// bootstraps etcd, and tells what etcd and the machines say about themselves. It never touches the virtual machines'
// hypervisor and never writes a secret to a disk.
//
// Up is the whole way. All nodes go in parallel, each from booting over maintenance and installing to running (machineStage); meanwhile one
// bootstrapper watches the control planes, from unreachable to healthy members of etcd (memberStage), and bootstraps etcd once
// (bootstrapPhase), when it is proven that no control plane holds an etcd yet. What counts as done is only what etcd's own member list says.
//
// What etcd and the machines say has no package of its own, since the bootstrapper's proof and castle's status ask the same.
package talos
