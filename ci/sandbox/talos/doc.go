// Package talos simulates machines that run Talos: maintenance mode, installation, the API over mutual TLS with the PKI of
// the applied configuration, etcd membership, and the virtual address that one control plane holds. It never runs Kubernetes:
// the world around it is told when a control plane's or a node's part of it starts and stops.
//
// A machine is one goroutine that goes off → booting → maintenance → configuring → running, or, where its disk has no Talos yet, → installing → rebooting → running. What it knows beyond
// a power cut stands on its simulated disk: the configuration and its place in an etcd. The disks of all machines are one JSON
// file. A machine configuration holds private keys, and so does that file, as the disk of a real machine would; its mode is 0600.
//
// The API, etcd and the virtual address stay in the package of the machines, since each is a view of the state that a machine
// has under the lock of its fleet.
package talos
