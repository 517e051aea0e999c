// Package talosnodes has no code. Its tests are one list of what machines that run Talos do, played twice: against the simulator, as every
// unit test is, and against real nodes where `make drill-talos` asks for them. Where the two differ, docs/proving-ground.md says so.
// A second list, of Kubernetes on such nodes, has real ones alone.
package talosnodes
