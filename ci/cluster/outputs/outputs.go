// Package outputs says where a cluster is reached, as its description has it. It asks nobody.
package outputs

import (
	"cmp"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
)

// Outputs are a cluster's endpoints.
type Outputs struct {
	Cluster    string   `json:"cluster"`
	Kubernetes string   `json:"kubernetes"` // the API, at the virtual IP
	Talos      []string `json:"talos"`      // the control planes
	Workers    []string `json:"workers"`
	Pool       []string `json:"loadBalancerPool"`
	GitOps     string   `json:"gitops"` // repository, branch and path
}

// Of takes a cluster's outputs out of its description; nothing is asked.
func Of(d *config.Cluster) Outputs {
	out := Outputs{
		Cluster: d.Name, Kubernetes: d.Server(), Pool: d.LoadBalancer.Pool,
		GitOps: fmt.Sprintf("%s, branch %s, path %s", d.GitOps.URL, d.GitOps.Branch, d.GitOps.Path),
	}
	for _, node := range d.ControlPlanes() {
		out.Talos = append(out.Talos, node.Address.String())
	}
	for _, node := range d.Workers() {
		out.Workers = append(out.Workers, node.Address.String())
	}
	return out
}

// Text is for a person.
func (o Outputs) Text() string {
	return fmt.Sprintf(`Kubernetes     %s
Talos          %s
workers        %s
load balancer  %s
GitOps         %s
kubeconfig     dagger call kubeconfig --cluster %s plaintext > kubeconfig
talosconfig    dagger call talosconfig --cluster %s plaintext > talosconfig
time line      dagger call timeline --cluster %s export --path timeline
`, o.Kubernetes, strings.Join(o.Talos, ", "), orNone(o.Workers), orNone(o.Pool), o.GitOps, o.Cluster, o.Cluster, o.Cluster)
}

func orNone(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }

// Markdown is for a job's summary.
func (o Outputs) Markdown() string { return rendering.Block("text", o.Text()) }
