// Package agent is the kubelet of every node of a simulated cluster. A container of a known image runs as a real process
// with its pod's arguments, environment, token, volumes and network; every other container becomes Running and Ready when
// its image would have been pulled. It never decides what runs: that is the API server's, the scheduler's and the layers'.
//
// It plays the kubelet for all pods and keeps the nodes' leases itself, where kwok would do that for some of them: one
// writer of a pod's status, one allocator of pod addresses and one switch for a node's power leave no race between two.
// Volumes, probes and processes stay in the same package for that reason: they are steps of the one worker of their pod.
package agent
