// Package kube is the Kubernetes of the proving ground: real etcd, API server, controller manager and scheduler as
// processes in the network namespace it is called in, nodes whose pods of known images are real processes, and the
// addresses that lead there. It never installs anything into the cluster; the layers do.
package kube
