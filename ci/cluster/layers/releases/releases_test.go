package releases_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/releases"
	"tazlab.net/castle/ci/test/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// Each case is the history of one release, oldest revision first.
func TestWhatAnInterruptedRunLeftUnfinishedIsRemovedAndNothingElse(t *testing.T) {
	server := shared.Server(t)
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	if err != nil {
		t.Fatal(err)
	}
	secrets := typed.CoreV1().Secrets("default")
	keep := func(release string, history ...string) {
		t.Helper()
		for i, status := range history {
			_, err := secrets.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, i+1),
					Labels: map[string]string{"owner": "helm", "name": release, "status": status, "version": fmt.Sprint(i + 1)}},
				Type: "helm.sh/release.v1",
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := func(release string) (history []string) {
		t.Helper()
		list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: "name=" + release})
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range list.Items {
			history = append(history, secret.Labels["version"]+" "+secret.Labels["status"])
		}
		slices.Sort(history)
		return history
	}
	keep("neighbour", "pending-install")
	cases := map[string]struct{ history, freed, left []string }{
		"never-installed": {},
		"in-order":        {[]string{"superseded", "deployed"}, nil, []string{"1 superseded", "2 deployed"}},
		"never-deployed":  {[]string{"failed"}, []string{"1 failed"}, nil},
		"tried-twice":     {[]string{"failed", "failed", "pending-upgrade"}, []string{"3 pending-upgrade", "2 failed", "1 failed"}, nil},
		"failed":          {[]string{"deployed", "failed"}, nil, []string{"1 deployed", "2 failed"}},
		"first":           {[]string{"pending-install"}, []string{"1 pending-install"}, nil},
		"upgrade":         {[]string{"deployed", "pending-upgrade"}, []string{"2 pending-upgrade"}, []string{"1 deployed"}},
		"at-its-end":      {[]string{"superseded", "pending-upgrade"}, []string{"2 pending-upgrade"}, []string{"1 superseded"}},
		"rollback":        {[]string{"superseded", "deployed", "pending-rollback"}, []string{"3 pending-rollback"}, []string{"1 superseded", "2 deployed"}},
		"removal":         {[]string{"superseded", "uninstalling"}, []string{"2 uninstalling"}, []string{"1 superseded"}},
		// Labels sort as text, revisions as numbers.
		"long": {[]string{"pending-upgrade", "superseded", "superseded", "superseded", "superseded", "superseded", "superseded", "superseded", "superseded", "deployed"},
			nil, []string{"1 pending-upgrade", "10 deployed", "2 superseded", "3 superseded", "4 superseded", "5 superseded", "6 superseded", "7 superseded", "8 superseded", "9 superseded"}},
	}
	for name, c := range cases {
		keep(name, c.history...)
		records, err := releases.Free(t.Context(), client, layers.Release{Namespace: "default", Name: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var freed []string
		for _, record := range records {
			freed = append(freed, fmt.Sprint(record.Revision, " ", record.Status))
			if record.Since.IsZero() {
				t.Errorf("%s: nobody is told since when revision %d is %s", name, record.Revision, record.Status)
			}
		}
		if left := kept(name); !slices.Equal(freed, c.freed) || !slices.Equal(left, c.left) {
			t.Errorf("%s: of %v, %v were removed and %v are left", name, c.history, freed, left)
		}
	}
	if left := kept("neighbour"); len(left) != 1 {
		t.Errorf("another release's records are %v", left)
	}
}
