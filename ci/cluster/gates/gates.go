package gates

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/description"
)

// Env is what the gates look at and compare with.
type Env struct {
	Kube    *Kube
	Cluster *description.Cluster // for the gates platform, networking and storage
	Talos   Talos                // for the gate platform
	// Revision is what Flux must be at, a commit or "main@sha1:<commit>". Empty: whatever its source is at.
	Revision string
	// Image is what the blog must run. Empty: whatever its Deployment names.
	Image string
	// Delivery is how the blog gets into the cluster, for the gate blog and for WaitRollout.
	Delivery Delivery
	// LookOnly leaves out the conditions that create something to see whether it works.
	LookOnly bool
}

// row is a condition as the tables name it: what is waited for, how that is seen, and the command that shows more.
type row struct {
	what string
	Waiter
	next string
}

func (r row) Name() string { return r.what }
func (r row) Next() string { return r.next }

// Objects that castle makes, or that its layers install under these names.
var (
	fluxSource = Object{"flux-system", "flux-system"}
	fluxRoot   = Object{"flux-system", "flux-system"}
)

// gates lists all gates in the layers' order.
var gates = []struct {
	name  string
	needs func(Env) error
	rows  func(Env) []row
}{
	{"platform", all(needKube, needCluster, needTalos), platform},
	{"engine-webhook", needKube, engineWebhook},
	{"engine-store", needKube, engineStore},
	{"engine", needKube, engine},
	{"networking-webhook", needKube, networkingWebhook},
	{"networking", all(needKube, needCluster), networking},
	{"storage", all(needKube, needCluster), storage},
	{"gitops-store", needKube, engineStore},
	{"gitops-secrets", needKube, gitopsSecrets},
	{"gitops-controllers", needKube, gitopsControllers},
	{"gitops", needKube, gitops},
	{"blog", needKube, blogRows},
}

func platform(e Env) []row {
	vip := "https://" + net.JoinHostPort(e.Cluster.Endpoint.String(), "6443") + "/readyz"
	names := make([]string, len(e.Cluster.Nodes))
	for i, node := range e.Cluster.Nodes {
		names[i] = node.Name
	}
	controlPlane := firstControlPlane(e.Cluster)
	return []row{
		{"etcd quorum", etcdQuorum(e.Talos), "talosctl -n " + controlPlane + " etcd members"},
		{"virtual IP " + e.Cluster.Endpoint.String(), Steady{e.Kube, vip, 8, 250 * time.Millisecond}, "talosctl -n " + controlPlane + " get addresses"},
		{"Kubernetes API", e.Kube.apiReady(), "talosctl -n " + controlPlane + " service kubelet; talosctl -n " + controlPlane + " containers -k"},
		{"nodes", e.Kube.nodesReady(names), "kubectl get nodes -o wide; talosctl -n " + controlPlane + " health"},
	}
}

func engineWebhook(e Env) []row {
	const ns = "external-secrets"
	return []row{
		{"CRDs of External Secrets Operator", e.Kube.Objects(customResourceDefinitions, "", established, "externalsecrets.external-secrets.io", "clustersecretstores.external-secrets.io"), "kubectl get crds"},
		{"webhook external-secrets-webhook in " + ns, Webhook{e.Kube, Object{ns, "external-secrets-webhook"}, externalSecretsProbes(ns)}, lookInto(ns)},
	}
}

func engineStore(e Env) []row {
	return []row{
		{"ClusterSecretStore infisical", e.Kube.Objects(clusterStores, "", conditionReady, "infisical"), "kubectl describe clustersecretstore infisical"},
	}
}

func engine(e Env) []row {
	const ns = "external-secrets"
	return append(engineStore(e),
		row{"ExternalSecret castle-proof in " + ns, e.Kube.Objects(externalSecrets, ns, synced, "castle-proof"), "kubectl -n " + ns + " describe externalsecret castle-proof"})
}

func networkingWebhook(e Env) []row {
	const ns = "metallb-system"
	return []row{
		{"CRDs of MetalLB", e.Kube.Objects(customResourceDefinitions, "", established, "ipaddresspools.metallb.io", "l2advertisements.metallb.io"), "kubectl get crds"},
		{"webhook metallb-webhook-service in " + ns, Webhook{e.Kube, Object{ns, "metallb-webhook-service"}, metallbProbes(ns)}, lookInto(ns)},
	}
}

func networking(e Env) []row {
	const ns = "metallb-system"
	rows := []row{
		{"IPAddressPool castle in " + ns, e.Kube.Objects(addressPools, ns, accepted, "castle"), "kubectl -n " + ns + " describe ipaddresspool castle"},
		{"L2Advertisement castle in " + ns, e.Kube.Objects(advertisements, ns, present, "castle"), "kubectl -n " + ns + " get l2advertisements"},
	}
	if e.LookOnly {
		return rows
	}
	return append(rows,
		row{"an address for a LoadBalancer Service", LoadBalancer{e.Kube, "castle", e.Cluster.LoadBalancer.Pool}, "kubectl get services -A; kubectl -n " + ProofNamespace + " get events; kubectl -n " + ns + " logs deployment/metallb-controller"})
}

func storage(e Env) []row {
	const ns = "longhorn-system"
	class := e.Cluster.Storage.StorageClass
	return []row{
		{"StorageClass " + class, e.Kube.Objects(storageClasses, "", defaultClass, class), "kubectl get storageclasses"},
		{"DaemonSet longhorn-manager in " + ns, e.Kube.Objects(daemonSets, ns, onEveryNode, "longhorn-manager"), lookInto(ns)},
		{"CSIDriver driver.longhorn.io", e.Kube.Objects(csiDrivers, "", present, "driver.longhorn.io"), "kubectl get csidrivers; " + lookInto(ns)},
	}
}

func gitopsSecrets(e Env) []row {
	const ns = "flux-system"
	return []row{
		{"ExternalSecrets of Flux in " + ns, e.Kube.Objects(externalSecrets, ns, synced, "flux-system", "sops-age"), "kubectl -n " + ns + " describe externalsecrets"},
	}
}

func gitopsControllers(e Env) []row {
	const ns = "flux-system"
	return []row{
		{"CRDs of Flux", e.Kube.Objects(customResourceDefinitions, "", established,
			"gitrepositories.source.toolkit.fluxcd.io", "helmrepositories.source.toolkit.fluxcd.io",
			"kustomizations.kustomize.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io"), "kubectl get crds"},
		{"controllers of Flux", e.Kube.Objects(deployments, ns, available, "source-controller", "kustomize-controller", "helm-controller"), lookInto(ns)},
	}
}

func gitops(e Env) []row {
	const ns = "flux-system"
	return []row{
		{"GitRepository " + fluxSource.Name, e.Kube.Objects(gitRepositories, ns, sourceAt(e.Revision), fluxSource.Name), "kubectl -n " + ns + " describe gitrepository " + fluxSource.Name},
		{"Kustomizations", e.Kube.delivered(fluxSource, fluxRoot, e.Revision), "kubectl get kustomizations -A; kubectl -n " + ns + " logs deployment/kustomize-controller"},
	}
}

func blogRows(e Env) []row {
	blog := e.Delivery.complete().Deployment
	return []row{
		{"Deployment " + blog.Name + " in " + blog.Namespace, e.Kube.Objects(deployments, blog.Namespace, runs(e.Image), blog.Name), "kubectl -n " + blog.Namespace + " get deployments,pods"},
	}
}

// Gates lists the names of all gates.
func Gates() []string {
	names := make([]string, len(gates))
	for i, gate := range gates {
		names[i] = gate.name
	}
	return names
}

// Gate is the table of a gate. It fails when there is no such gate or env lacks what it looks at.
func Gate(name string, env Env) ([]Condition, error) {
	for _, gate := range gates {
		if gate.name != name {
			continue
		}
		if err := gate.needs(env); err != nil {
			return nil, fmt.Errorf("gate %s: %w", name, err)
		}
		var conditions []Condition
		for _, row := range gate.rows(env) {
			conditions = append(conditions, row)
		}
		return conditions, nil
	}
	return nil, fmt.Errorf("no gate %q: there are %s", name, strings.Join(Gates(), ", "))
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

func needTalos(env Env) error {
	if env.Talos == nil {
		return errors.New("needs a connection to the Talos nodes")
	}
	return nil
}

func lookInto(namespace string) string {
	return "kubectl -n " + namespace + " get pods,endpointslices"
}

func firstControlPlane(c *description.Cluster) string {
	for _, node := range c.Nodes {
		if node.Role == description.RoleControlPlane {
			return node.Address.String()
		}
	}
	return c.Endpoint.String()
}

var _ Condition = row{}
