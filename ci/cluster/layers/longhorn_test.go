//go:build longhornchart

package layers_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/test/kubetest"
)

// TestTheRealChartOfLonghornIsApplied by the module of the layer storage, to a real API server, and a second time changes nothing. The chart is a
// folder that LONGHORN_CHART names, as `make check-longhorn` says: no test can fetch it.
func TestTheRealChartOfLonghornIsApplied(t *testing.T) {
	chart := os.Getenv("LONGHORN_CHART")
	if chart == "" {
		t.Fatal("LONGHORN_CHART names no folder")
	}
	r := newRunner(t)
	folder := composed(t)
	// The sandbox's description names the chart of its shape; the values that the module gives are those of every cluster.
	place := filepath.Join(folder, "longhorn-sandbox")
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(place, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	r.env["CASTLE_CHARTS"] = folder
	server := kubetest.Start(t)
	maps.Copy(r.env, server.Env())
	for _, want := range []string{"2 added, 0 changed", "0 added, 0 changed, 0 destroyed"} {
		out, _, err := r.runAll(t, "5-storage", "apply", "-auto-approve")
		if err != nil || !strings.Contains(out, "Apply complete! Resources: "+want) {
			t.Fatalf("not %s: %v\n%s", want, err, out)
		}
	}
	client, err := newClient(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := client.AppsV1().DaemonSets("longhorn-system").Get(t.Context(), "longhorn-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What castle pulls ahead is what the managers are told to use.
	command := strings.Join(manager.Spec.Template.Spec.Containers[0].Command, " ")
	all, err := charts.Charts(terragrunt)
	if err != nil {
		t.Fatal(err)
	}
	ours := slices.IndexFunc(all, func(c charts.Chart) bool { return c.Name == repositoryOnly })
	for _, image := range all[ours].Images {
		if !strings.Contains(command+manager.Spec.Template.Spec.Containers[0].Image, image.Name) {
			t.Errorf("%s is pulled ahead, and the chart says %s", image.Name, command)
		}
	}
	// The one folder whose mounts it shares with the machine is one that machines share.
	for _, mount := range manager.Spec.Template.Spec.Containers[0].VolumeMounts {
		if mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationBidirectional {
			continue
		}
		at := slices.IndexFunc(manager.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if path := manager.Spec.Template.Spec.Volumes[at].HostPath.Path; filepath.Clean(path) != config.LonghornFolder {
			t.Errorf("it shares mounts of %s", path)
		}
	}
}
