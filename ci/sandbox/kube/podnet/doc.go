// Package podnet makes the pod and service networks of a simulated cluster inside the network namespace it is called in:
// service addresses are local, each real pod has a namespace of its own on one bridge, and every other pod address is
// unreachable. It needs CAP_NET_ADMIN and CAP_SYS_ADMIN, and never touches an interface that it did not make.
package podnet
