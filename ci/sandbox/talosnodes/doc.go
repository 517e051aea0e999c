// Package talosnodes runs real Talos nodes in container mode, which is what `talosctl cluster create` does with Docker, but without Docker:
// machined and containerd are built from Go modules, and each node is a set of namespaces on a bridge of the caller's network namespace.
// Around them are what nodes ask for: a DNS, a registry that has their images, and a discovery service.
//
// A node is etcd alone: its kubelet is a stand-in that only says that it is well, so that there is no Kubernetes. Where Components say what
// Kubernetes is made of, the kubelet is a real one, and the registry has the images of all that a machine configuration of Talos's default
// starts: the control plane, kube-proxy, flannel and CoreDNS.
//
// What container mode leaves out is never played here: installation, META, upgrades, restarts and shutdowns by the API, wipes, encryption,
// kernel modules, time.
package talosnodes
