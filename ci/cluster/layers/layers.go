// Package layers is the table of a cluster's layers: their folders, what they need and wait for, their gates and charts. What
// runs when is decided by Terragrunt, which reads the units; the tests hold the table to them, and the units and modules of
// terragrunt/ to the project's rules. The packages below it run Terragrunt, read the states, and put charts together.
package layers

import (
	"slices"

	"tazlab.net/castle/ci/cluster/config"
)

// Layers, by the names that gates, states, events and people know them by; the folders are numbered.
const (
	Secrets    = "secrets"
	Platform   = "platform"
	Engine     = "engine"
	Networking = "networking"
	Storage    = "storage"
	GitOps     = "gitops"
)

// Gates within layers, by the names that the layers' modules wait for. A layer's own gate has its name.
const (
	EngineWebhook       = "engine-webhook"
	EngineStore         = "engine-store"
	NetworkingWebhook   = "networking-webhook"
	GitOpsTenancy       = "gitops-tenancy"
	GitOpsStore         = "gitops-store"
	GitOpsSecrets       = "gitops-secrets"
	GitOpsNotifications = "gitops-notifications"
	GitOpsControllers   = "gitops-controllers"
)

// Namespaces of the charts that the layers install.
const (
	EngineNamespace     = "external-secrets"
	NetworkingNamespace = "metallb-system"
	StorageNamespace    = "longhorn-system"
)

// UnitsFolder holds the units, a folder for each layer, in the folder of the layers. They are the same for every cluster.
const UnitsFolder = "units"

// Layer is a unit of Terragrunt, and a step on a cluster's way.
type Layer struct {
	Name   string
	Folder string   // the unit's, in UnitsFolder
	Needs  []string // layers that are done before it starts
	Awaits []string // layers whose objects it waits for on its way
	Gates  []string // in the order in which they can be passed; the layer's own is the last
	// Release is what Helm calls the chart once it is installed; the zero value where the layer installs none.
	Release Release

	chart string // what it installs, by its name in charts.yaml
	stand string // the chart of its shape for a sandbox, where that cannot have the real one
}

// Release is a release of Helm's.
type Release struct{ Namespace, Name string }

// All are the layers in the order of their folders.
var All = []Layer{
	{Name: Secrets, Folder: "1-secrets"},
	{Name: Platform, Folder: "2-platform", Needs: []string{Secrets}, Gates: []string{Platform}},
	{Name: Engine, Folder: "3-engine", Needs: []string{Platform}, Gates: []string{EngineWebhook, EngineStore, Engine},
		chart: "external-secrets", Release: Release{EngineNamespace, "external-secrets"}},
	{Name: Networking, Folder: "4-networking", Needs: []string{Platform}, Gates: []string{NetworkingWebhook, Networking},
		chart: "metallb", Release: Release{NetworkingNamespace, "metallb"}},
	{Name: Storage, Folder: "5-storage", Needs: []string{Platform}, Gates: []string{Storage},
		chart: "longhorn", stand: "longhorn-sandbox", Release: Release{StorageNamespace, "longhorn"}},
	{Name: GitOps, Folder: "6-gitops", Needs: []string{Platform}, Awaits: []string{Engine},
		Gates: []string{GitOpsTenancy, GitOpsStore, GitOpsSecrets, GitOpsNotifications, GitOpsControllers, GitOps},
		chart: "flux", Release: Release{"flux-system", "flux"}},
}

// Of are the layers of a cluster: it may do without storage and without a load balancer.
func Of(c *config.Cluster) []Layer {
	return slices.DeleteFunc(slices.Clone(All), func(layer Layer) bool {
		return layer.Name == Storage && !c.Storage.Has() || layer.Name == Networking && !c.LoadBalancer.Has()
	})
}

// Without are the layers that a cluster does without.
func Without(c *config.Cluster) []Layer {
	has := Of(c)
	return slices.DeleteFunc(slices.Clone(All), func(layer Layer) bool {
		return slices.ContainsFunc(has, func(one Layer) bool { return one.Name == layer.Name })
	})
}

// InCluster are the layers that cannot be removed without the cluster's API: their objects are in it.
func InCluster() []Layer { return All[2:] }

// Named finds a layer; an unknown one has nothing but its name.
func Named(name string) Layer {
	return find(Layer{Name: name}, func(layer Layer) bool { return layer.Name == name })
}

// OfFolder finds the layer of a unit; another folder stands for itself.
func OfFolder(folder string) Layer {
	return find(Layer{Name: folder, Folder: folder}, func(layer Layer) bool { return layer.Folder == folder })
}

// OfGate finds the layer that a gate stands in; a gate of no layer stands for itself.
func OfGate(gate string) Layer {
	return find(Layer{Name: gate}, func(layer Layer) bool { return slices.Contains(layer.Gates, gate) })
}

func find(otherwise Layer, is func(Layer) bool) Layer {
	if at := slices.IndexFunc(All, is); at >= 0 {
		return All[at]
	}
	return otherwise
}

// Chart is the chart that the layer installs on a platform, by its name in charts.yaml; empty where it installs none.
func (l Layer) Chart(platform string) string {
	if platform == config.PlatformSandbox && l.stand != "" {
		return l.stand
	}
	return l.chart
}

// Edges are the layers' dependencies by name, of both kinds: what a layer's end depends on.
func Edges() map[string][]string {
	edges := map[string][]string{}
	for _, layer := range All {
		edges[layer.Name] = slices.Concat(layer.Needs, layer.Awaits)
	}
	return edges
}
