package gates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// Env is what the gates look at and compare with.
type Env struct {
	Kube    *kube.Client
	Cluster *config.Cluster // for the gates platform, engine, networking and storage
	Talos   Talos           // for the gate platform
	// Revision is what Flux must be at, a commit or "main@sha1:<commit>". Empty: whatever its source is at.
	Revision string
	// LookOnly leaves out the conditions that create something to see whether it works.
	LookOnly bool
	// Scaled says that the cluster is a sandbox whose time does not go as real machines' does.
	Scaled bool
}

// gates lists all gates in the layers' order.
var gates = []struct {
	name       string
	needs      func(Env) error
	conditions func(Env) []Condition
}{
	{layers.Platform, all(needKube, needCluster, needTalos), platform},
	{layers.EngineWebhook, needKube, engineWebhook},
	{layers.EngineStore, needKube, engineStore},
	{layers.Engine, all(needKube, needCluster), engine},
	{layers.NetworkingWebhook, needKube, networkingWebhook},
	{layers.Networking, all(needKube, needCluster, needLoadBalancer), networking},
	{layers.Storage, all(needKube, needCluster, needStorage), storage},
	{layers.GitOpsTenancy, needKube, gitopsTenancy},
	{layers.GitOpsStore, needKube, fluxStore},
	{layers.GitOpsSecrets, needKube, gitopsSecrets},
	{layers.GitOpsNotifications, needKube, gitopsNotifications},
	{layers.GitOpsControllers, needKube, gitopsControllers},
	{layers.GitOps, needKube, gitops},
}

func platform(e Env) []Condition {
	names := make([]string, len(e.Cluster.Nodes))
	for i, node := range e.Cluster.Nodes {
		names[i] = node.Name
	}
	controlPlane := firstControlPlane(e.Cluster)
	return []Condition{
		{"etcd quorum", etcdQuorum(e.Talos), "talosctl -n " + controlPlane + " etcd members"},
		{"virtual IP " + e.Cluster.Endpoint.String() + " and API servers", steady{e.Kube, readyz(e.Cluster.Endpoint), apiServersOf(e.Cluster), steadyFor(e), steadyEvery, settledAfter(e)},
			"talosctl -n " + controlPlane + " get addresses; talosctl -n " + controlPlane + " containers -k"},
		{"Kubernetes API", apiReady(e.Kube), "talosctl -n " + controlPlane + " service kubelet; talosctl -n " + controlPlane + " containers -k"},
		{"nodes", nodesReady(e.Kube, names), "kubectl get nodes -o wide; talosctl -n " + controlPlane + " health"},
		{"the cluster's DNS", dnsServes(e.Kube, nodesReady(e.Kube, names)), "kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide; kubectl -n kube-system get events"},
	}
}

// definitions waits for CRDs; who only looks nudges none.
func definitions(e Env, names ...string) kube.WaitFunc {
	if e.LookOnly {
		return e.Kube.Objects(kube.CRDs, "", kube.Established, names...)
	}
	return e.Kube.Definitions(names...)
}

func engineWebhook(e Env) []Condition {
	const ns = layers.EngineNamespace
	return []Condition{
		{"CRDs of External Secrets Operator", definitions(e, "externalsecrets.external-secrets.io", "clustersecretstores.external-secrets.io"), "kubectl get crds"},
		{"webhook external-secrets-webhook in " + ns, webhook{e.Kube, kube.Object{Namespace: ns, Name: "external-secrets-webhook"}, externalSecretsProbes(ns)}, lookInto(ns)},
	}
}

func engineStore(e Env) []Condition { return append(storeReady(e, "infisical"), fluxStore(e)...) }

// fluxStore is the one that Flux's own secrets come from.
func fluxStore(e Env) []Condition { return storeReady(e, "infisical-flux") }

func storeReady(e Env, name string) []Condition {
	return []Condition{{"ClusterSecretStore " + name, e.Kube.Objects(clusterStores, "", kube.Ready, name), "kubectl describe clustersecretstore " + name}}
}

// engine is the store and a secret that came through; without Infisical there is none, and the operator itself is what counts.
func engine(e Env) []Condition {
	const ns = layers.EngineNamespace
	if !e.Cluster.Secrets.Infisical.Has() {
		if e.LookOnly {
			return engineWebhook(e)[:1]
		}
		return engineWebhook(e)
	}
	return append(engineStore(e),
		Condition{"ExternalSecret castle-proof in " + ns, e.Kube.Objects(externalSecrets, ns, synced, "castle-proof"), "kubectl -n " + ns + " describe externalsecret castle-proof"})
}

func networkingWebhook(e Env) []Condition {
	const ns = layers.NetworkingNamespace
	return []Condition{
		{"CRDs of MetalLB", definitions(e, "ipaddresspools.metallb.io", "l2advertisements.metallb.io"), "kubectl get crds"},
		{"webhook metallb-webhook-service in " + ns, webhook{e.Kube, kube.Object{Namespace: ns, Name: "metallb-webhook-service"}, metallbProbes(ns)}, lookInto(ns)},
	}
}

func networking(e Env) []Condition {
	const ns = layers.NetworkingNamespace
	conditions := []Condition{
		{"IPAddressPool castle in " + ns, e.Kube.Objects(addressPools, ns, accepted, "castle"), "kubectl -n " + ns + " describe ipaddresspool castle"},
		{"L2Advertisement castle in " + ns, e.Kube.Objects(advertisements, ns, kube.Present, "castle"), "kubectl -n " + ns + " get l2advertisements"},
	}
	if e.LookOnly {
		return conditions
	}
	return append(conditions,
		Condition{"an address for a LoadBalancer Service", loadBalancer{e.Kube, "castle", e.Cluster.LoadBalancer.Pool, e.Cluster.ControlPlanes(), answersWithin},
			"kubectl get services -A; kubectl -n " + proofNamespace + " get events; kubectl -n " + ns + " logs deployment/metallb-controller; kubectl -n " + ns + " logs daemonset/metallb-speaker"})
}

func storage(e Env) []Condition {
	const ns = layers.StorageNamespace
	class := e.Cluster.Storage.StorageClass
	conditions := []Condition{
		{"StorageClass " + class, e.Kube.Objects(kube.StorageClasses, "", defaultClass, class), "kubectl get storageclasses"},
		{"DaemonSet longhorn-manager in " + ns, e.Kube.Objects(kube.DaemonSets, ns, kube.OnEveryNode, "longhorn-manager"), lookInto(ns)},
		{"CSIDriver driver.longhorn.io", e.Kube.Objects(kube.CSIDrivers, "", kube.Present, "driver.longhorn.io"), "kubectl get csidrivers; " + lookInto(ns)},
		{"DaemonSet longhorn-csi-plugin in " + ns, e.Kube.Objects(kube.DaemonSets, ns, kube.OnEveryNode, "longhorn-csi-plugin"), lookInto(ns)},
	}
	if e.LookOnly {
		return conditions
	}
	return append(conditions, Condition{"a volume for a pod", volume{e.Kube, class},
		"kubectl -n " + proofNamespace + " describe pods,persistentvolumeclaims; kubectl get volumeattachments; " + lookInto(ns)})
}

// gitopsTenancy: nothing that Flux applies fails by the flags that its controllers are about to get. No waiting mends it.
func gitopsTenancy(e Env) []Condition {
	look := func(ctx context.Context, _ func(string)) error {
		problems, err := flux.AgainstLockdown(ctx, e.Kube)
		if err != nil {
			return err
		}
		return flux.LockdownRefused(problems)
	}
	return []Condition{
		{"Flux's objects to fit the multi-tenancy lockdown", kube.WaitFunc(look), "kubectl get kustomizations,helmreleases,alerts,receivers -A"},
	}
}

func gitopsSecrets(e Env) []Condition {
	const ns = flux.Namespace
	return []Condition{
		{"ExternalSecrets of Flux in " + ns, e.Kube.Objects(externalSecrets, ns, synced, "flux-system", "sops-age"), "kubectl -n " + ns + " describe externalsecrets"},
	}
}

// gitopsNotifications: what Flux's other controllers do, each waits to tell of, for seconds where nobody answers.
func gitopsNotifications(e Env) []Condition {
	const ns = flux.Namespace
	return []Condition{
		{"Flux's notification-controller", e.Kube.Objects(kube.Deployments, ns, kube.Available, flux.NotificationController), lookInto(ns)},
	}
}

func gitopsControllers(e Env) []Condition {
	const ns = flux.Namespace
	return []Condition{
		{"CRDs of Flux", definitions(e,
			"gitrepositories.source.toolkit.fluxcd.io", "helmrepositories.source.toolkit.fluxcd.io",
			"kustomizations.kustomize.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io"), "kubectl get crds"},
		{"controllers of Flux", e.Kube.Objects(kube.Deployments, ns, kube.Available, "source-controller", "kustomize-controller", "helm-controller", flux.NotificationController), lookInto(ns)},
	}
}

func gitops(e Env) []Condition {
	const ns = flux.Namespace
	names := flux.DefaultDelivery
	return []Condition{
		{"GitRepository " + names.Source.Name, e.Kube.Objects(flux.GitRepositories, ns, flux.SourceAt(e.Revision), names.Source.Name), "kubectl -n " + ns + " describe gitrepository " + names.Source.Name},
		{"Kustomizations", delivered(e.Kube, names.Source, names.Kustomization, e.Revision), "kubectl get kustomizations -A; kubectl -n " + ns + " logs deployment/kustomize-controller"},
	}
}

// Names lists the names of all gates.
func Names() []string {
	names := make([]string, len(gates))
	for i, gate := range gates {
		names[i] = gate.name
	}
	return names
}

// Limit is how long a gate is waited for where nobody says otherwise. What comes from Git is anybody's: charts that Flux fetches, one
// after the other where they depend on each other, and their images.
func Limit(gate string) time.Duration {
	if gate == layers.GitOps {
		return 20 * time.Minute
	}
	return 10 * time.Minute
}

// Conditions is the table of a gate. It fails when there is no such gate or env lacks what it looks at.
func Conditions(name string, env Env) ([]Condition, error) {
	for _, gate := range gates {
		if gate.name != name {
			continue
		}
		if err := gate.needs(env); err != nil {
			return nil, fmt.Errorf("gate %s: %w", name, err)
		}
		return gate.conditions(env), nil
	}
	return nil, fmt.Errorf("no gate %q: there are %s", name, strings.Join(Names(), ", "))
}

func all(needs ...func(Env) error) func(Env) error {
	return func(env Env) error {
		var errs []error
		for _, need := range needs {
			errs = append(errs, need(env))
		}
		return errors.Join(errs...)
	}
}

func needKube(env Env) error {
	if env.Kube == nil {
		return errors.New("needs a connection to the cluster's API")
	}
	return nil
}

func needCluster(env Env) error {
	if env.Cluster == nil {
		return errors.New("needs the cluster's description")
	}
	return nil
}

func needLoadBalancer(env Env) error {
	if env.Cluster != nil && !env.Cluster.LoadBalancer.Has() {
		return errors.New("the cluster has no load balancer (loadBalancer: none)")
	}
	return nil
}

func needStorage(env Env) error {
	if env.Cluster != nil && !env.Cluster.Storage.Has() {
		return errors.New("the cluster has no storage (storage: none)")
	}
	return nil
}

func needTalos(env Env) error {
	if env.Talos == nil {
		return errors.New("needs a connection to the Talos nodes")
	}
	return nil
}

func lookInto(namespace string) string {
	return "kubectl -n " + namespace + " get pods,endpointslices"
}

func firstControlPlane(c *config.Cluster) string {
	for _, node := range c.Nodes {
		if node.Role == config.RoleControlPlane {
			return node.Address.String()
		}
	}
	return c.Endpoint.String()
}
