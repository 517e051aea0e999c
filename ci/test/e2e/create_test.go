package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getsops/sops/v3/decrypt"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/status"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// sandboxCluster is the cluster of the whole story below. Its world is a cache volume of the engine, emptied first.
const sandboxCluster = "sandbox"

// scale is how much of a homelab's time the story takes.
const scale = "--time-scale=0.05"

// TestASandboxIsCreatedUsedAndDestroyed is one story, because every part of it needs the one before.
func TestASandboxIsCreatedUsedAndDestroyed(t *testing.T) {
	needs.MainPath(t)
	began := time.Now().Add(-time.Second)
	mustCall(t, nil, "sandbox-reset", "--cluster="+sandboxCluster)
	on := []string{"--cluster=" + sandboxCluster, scale}

	t.Run("plan shows everything as new", func(t *testing.T) {
		plan := mustCall(t, nil, append([]string{"plan"}, on...)...)
		for _, want := range []string{"Plan: 5 to add", `proxmox_virtual_environment_vm.node["sandbox-cp-1"] will be created`} {
			if !strings.Contains(plan, want) {
				t.Errorf("%q is not in:\n%s", want, plan)
			}
		}
	})
	t.Run("create", func(t *testing.T) {
		done := call(t, nil, append([]string{"create", "--format=JSON"}, on...)...)
		if done.err != nil {
			t.Fatalf("%v\n%s", done.err, done.stderr)
		}
		var result run.Result
		if err := json.Unmarshal([]byte(done.stdout), &result); err != nil {
			t.Fatal(err)
		}
		if result.Timeline.Result != timeline.ResultOK || len(result.Timeline.Layers) != 6 {
			t.Errorf("got %+v", result.Timeline)
		}
		if !strings.Contains(done.stderr, "gate webhook metallb-webhook-service in metallb-system: ok") {
			t.Errorf("no step line of a gate in:\n%s", done.stderr)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("outputs say where it is", func(t *testing.T) {
		if out := mustCall(t, nil, "outputs", "--cluster="+sandboxCluster); !strings.Contains(out, "https://192.168.77.210:6443") {
			t.Errorf("got %s", out)
		}
	})
	t.Run("status sees all gates hold", func(t *testing.T) {
		// Each call powers the world on again, and Flux begins with looking at everything anew: it is asked until that is over.
		var seen status.Status
		for deadline := time.Now().Add(3 * time.Minute); ; {
			if err := json.Unmarshal([]byte(mustCall(t, nil, append([]string{"status", "--format=JSON"}, on...)...)), &seen); err != nil {
				t.Fatal(err)
			}
			closed := slices.DeleteFunc(slices.Clone(seen.Gates), func(gate status.GateStatus) bool { return gate.Holds })
			if len(closed) == 0 {
				break
			}
			if t.Logf("do not hold yet: %+v", closed); time.Now().After(deadline) {
				t.Fatal("the gates that create has passed do not hold after it")
			}
		}
		if len(seen.Gates) < 10 || len(seen.Nodes) != 5 {
			t.Errorf("got %+v", seen)
		}
	})
	again := t.Run("a second create changes nothing", func(t *testing.T) {
		mustCall(t, nil, append([]string{"create"}, on...)...)
		folder := filepath.Join(t.TempDir(), "timeline")
		mustCall(t, nil, "timeline", "--cluster="+sandboxCluster, "export", "--path="+folder)
		for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
			log, err := os.ReadFile(filepath.Join(folder, "log", layer+".log"))
			if err != nil || !bytes.Contains(log, []byte("0 added, 0 changed, 0 destroyed")) {
				t.Errorf("%s: %v\n%s", layer, err, log)
			}
		}
		page, err := os.ReadFile(filepath.Join(folder, "timeline.html"))
		if err != nil || !bytes.Contains(page, []byte("<svg")) && !bytes.Contains(page, []byte("<table")) {
			t.Errorf("the time line is no page: %v", err)
		}
	})
	if !again {
		return // what comes next asks the same world, and each call of it may take as long
	}
	source := newBlog(t)
	first := world.Git(t, source, "rev-parse", "HEAD")
	t.Run("publish-blog waits for the pod", func(t *testing.T) {
		out := mustCall(t, nil, append([]string{"publish-blog", "--source=" + source, "--wait"}, on...)...)
		if !strings.Contains(out, "available") {
			t.Errorf("got %s", out)
		}
	})
	t.Run("wait-blog finds the Deployment by castle.yaml's image", func(t *testing.T) {
		out := mustCall(t, nil, append([]string{"wait-blog", "--timeout=1m"}, on...)...)
		if !strings.HasPrefix(out, "blog/hugo-blog is available on cluster sandbox\n") || !strings.Contains(out, "blog-"+first[:7]) {
			t.Errorf("got %s", out)
		}
	})
	t.Run("rollback-blog waits for the pod of the earlier image", func(t *testing.T) {
		filetest.Write(t, filepath.Join(source, "README.md"), "Another commit.\n")
		world.CommitAll(t, source, "Say something about it")
		mustCall(t, nil, append([]string{"publish-blog", "--source=" + source}, on...)...)
		out := mustCall(t, nil, append([]string{"rollback-blog", "--to=" + first, "--wait"}, on...)...)
		if !strings.HasPrefix(out, "Rolled back\n") || !strings.Contains(out, "available") || !strings.Contains(out, "blog-"+first[:7]) {
			t.Errorf("got %s", out)
		}
		history := mustCall(t, nil, append([]string{"history"}, on...)...)
		if order := regexp.MustCompile(`(?s)rollback.*blog-` + first[:7] + `.*publish.*publish.*blog-` + first[:7]); !order.MatchString(history) {
			t.Errorf("the history is not rollback, publish, publish:\n%s", history)
		}
	})
	kubeconfig := mustCall(t, nil, append(append([]string{"kubeconfig"}, on...), "plaintext")...)
	t.Run("the blog gets no more pods", func(t *testing.T) { limitPods(t, kubeconfig, on) }) // with its end, the world is let go
	t.Run("a rollout that fails gives way to the image before it", func(t *testing.T) {
		filetest.Write(t, filepath.Join(source, "README.md"), "A commit whose pods are refused.\n")
		world.CommitAll(t, source, "Say one thing more about it")
		done := call(t, nil, append([]string{"publish-blog", "--source=" + source, "--wait", "--rollback-on-failure", "--wait-timeout=45s"}, on...)...)
		if done.err == nil {
			t.Fatalf("the call succeeded:\n%s", done.stdout)
		}
		for _, want := range []string{"exceeded quota: no-more", "blog-" + first[:7] + ", was put back", "and is available"} {
			if !strings.Contains(done.stderr, want) {
				t.Errorf("%q is not in:\n%s", want, done.stderr)
			}
		}
	})
	t.Run("no secret is left", func(t *testing.T) {
		config, err := clientcmd.Load([]byte(kubeconfig))
		if err != nil || len(config.AuthInfos) != 1 {
			t.Fatalf("%v: %d users", err, len(config.AuthInfos))
		}
		canaries := bootstrapSecrets(t)
		for _, user := range config.AuthInfos {
			canaries = append(canaries, []byte(base64.StdEncoding.EncodeToString(user.ClientKeyData)), user.ClientKeyData)
		}
		look := func(place string, data []byte) {
			for _, canary := range canaries {
				if bytes.Contains(data, canary) {
					t.Errorf("a secret is in %s", place)
				}
			}
		}
		printed := bytes.ReplaceAll(transcript.Bytes(), []byte(kubeconfig), nil)
		look("what dagger printed", printed)
		if ownEngine() {
			files := lookInFolder(t, filepath.Join(os.Getenv("CASTLE_CACHE"), "engine"), began, look)
			t.Logf("searched %d files that the engine wrote meanwhile", files)
		}
	})
	t.Run("destroy is refused without its confirmation", func(t *testing.T) {
		if done := call(t, nil, append([]string{"destroy", "--confirm=blue"}, on...)...); done.err == nil || !strings.Contains(done.stderr, "--confirm sandbox") {
			t.Errorf("%v\n%s", done.err, done.stderr)
		}
	})
	t.Run("destroy leaves nothing", func(t *testing.T) {
		mustCall(t, nil, append([]string{"destroy", "--confirm=" + sandboxCluster}, on...)...)
		var status status.Status
		if err := json.Unmarshal([]byte(mustCall(t, nil, append([]string{"status", "--format=JSON"}, on...)...)), &status); err != nil {
			t.Fatal(err)
		}
		for _, layer := range status.Layers {
			if layer.Resources != 0 {
				t.Errorf("%+v", layer)
			}
		}
		for _, node := range status.Nodes {
			if node.VM != "absent" {
				t.Errorf("%+v", node)
			}
		}
	})
}

// limitPods has the sandbox's cluster take no more pods in the blog's namespace than the two of its Deployment: those of another image cannot be
// made beside them.
func limitPods(t *testing.T, kubeconfig string, on []string) {
	t.Helper()
	proxy, err := url.Parse(startService(t, root(t), nil, append([]string{"sandbox"}, on...), 3128))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	config.Proxy = http.ProxyURL(proxy)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := client.CoreV1().ResourceQuotas("blog").Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "no-more"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		}, metav1.CreateOptions{})
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(time.Second): // the world is being powered on
		}
	}
}

// bootstrapSecrets are those of the SOPS file that the world itself does not hold in clear.
func bootstrapSecrets(t *testing.T) [][]byte {
	t.Helper()
	live := filepath.Join(root(t), "terragrunt", "live", sandboxCluster)
	key, err := os.ReadFile(filepath.Join(live, "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOPS_AGE_KEY", string(key))
	clear, err := decrypt.File(filepath.Join(live, "secrets.sops.yaml"), "yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]string
	if err := yaml.Unmarshal(clear, &values); err != nil {
		t.Fatal(err)
	}
	return [][]byte{[]byte(values["STATE_PASSPHRASE"])}
}

func TestAnInvalidDescriptionRunsNothing(t *testing.T) {
	needs.Most(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(root(t), "terragrunt", "live"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, sandboxCluster, "cluster.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("192.168.77.212,"), []byte("192.168.78.212,"))
	text = bytes.ReplaceAll(text, []byte("gateway: 192.168.77.1"), []byte("gateway: 192.168.77.213"))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, function := range []string{"validate", "create"} {
		done := call(t, nil, function, "--cluster="+sandboxCluster, "--repository="+folder)
		if done.err == nil || !strings.Contains(done.stderr, "192.168.78.212") || !strings.Contains(done.stderr, "gateway") {
			t.Errorf("%s: %v\n%s", function, done.err, done.stderr)
		}
	}
}
