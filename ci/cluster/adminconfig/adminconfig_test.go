package adminconfig

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// made is a cluster with its secrets, and both configurations.
func made(t *testing.T) (described *clusterconfig.Cluster, bundle *machineconfig.Bundle, kubeconfig, talosconfig string) {
	t.Helper()
	described, err := clusterconfig.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := machineconfig.NewSecrets(described)
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err = machineconfig.ParseSecrets(secrets); err != nil {
		t.Fatal(err)
	}
	kube, err := machineconfig.AdminKube(described, bundle, 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	kubeconfig = fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: admin@blue
clusters: [{name: blue, cluster: {server: "%s", certificate-authority-data: %s}}]
users: [{name: admin@blue, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: admin@blue, context: {cluster: blue, user: admin@blue}}]
`, kube.Host, text(kube.CA), text(kube.Cert), text(kube.Key))
	_, config, err := machineconfig.Configs(described, bundle)
	if err != nil {
		t.Fatal(err)
	}
	data, err := config.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return described, bundle, kubeconfig, string(data)
}

func TestWhatIsKeptIsReplacedWhereItNoLongerOpensTheCluster(t *testing.T) {
	described, bundle, kubeconfig, talosconfig := made(t)
	_, other, otherKubeconfig, otherTalosconfig := made(t)
	moved := *described
	moved.Endpoint = moved.Endpoint.Next()
	fewer := *described
	fewer.Nodes = fewer.Nodes[1:]
	now := time.Now()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"kubeconfig, well":                    {JudgeKubeconfig(kubeconfig, described, bundle, now), ""},
		"kubeconfig, eleven months later":     {JudgeKubeconfig(kubeconfig, described, bundle, now.Add(336*24*time.Hour)), "its certificate ends on"},
		"kubeconfig, ten months later":        {JudgeKubeconfig(kubeconfig, described, bundle, now.Add(300*24*time.Hour)), ""},
		"kubeconfig, of another cluster":      {JudgeKubeconfig(otherKubeconfig, described, bundle, now), "another cluster's authority"},
		"kubeconfig, whose cluster was moved": {JudgeKubeconfig(kubeconfig, &moved, bundle, now), "the API is at https://192.168.1.211:6443"},
		"kubeconfig, an empty one":            {JudgeKubeconfig("", described, bundle, now), "no current context"},
		"kubeconfig, nonsense":                {JudgeKubeconfig("\t{", described, bundle, now), "it is no kubeconfig"},
		"kubeconfig, without its key":         {JudgeKubeconfig(strings.Replace(kubeconfig, "client-key-data", "was", 1), described, bundle, now), "do not belong together"},
		"talosconfig, well":                   {JudgeTalosconfig(talosconfig, described, bundle, now), ""},
		"talosconfig, eleven months later":    {JudgeTalosconfig(talosconfig, described, bundle, now.Add(336*24*time.Hour)), "its certificate ends on"},
		"talosconfig, of another cluster":     {JudgeTalosconfig(otherTalosconfig, described, bundle, now), "another cluster's authority"},
		"talosconfig, of other secrets":       {JudgeTalosconfig(talosconfig, described, other, now), "another cluster's authority"},
		"talosconfig, of other nodes":         {JudgeTalosconfig(talosconfig, &fewer, bundle, now), "not the control planes"},
		"talosconfig, nonsense":               {JudgeTalosconfig("\t{", described, bundle, now), "it is no talosconfig"},
		"talosconfig, an empty one":           {JudgeTalosconfig("", described, bundle, now), "it is no talosconfig"},
	} {
		switch {
		case test.want == "" && test.err != nil, test.want != "" && test.err == nil:
			t.Errorf("%s: %v", name, test.err)
		case test.err != nil && !strings.Contains(test.err.Error(), test.want):
			t.Errorf("%s: %v does not say %q", name, test.err, test.want)
		}
	}
}
