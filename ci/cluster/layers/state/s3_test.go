package state

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/needs"
)

// A store with an endpoint and no region was once written by create and could not be opened by destroy and status.
func TestAStateThatALayerWroteToAStoreWithoutRegionsIsRead(t *testing.T) {
	store := withTofu(t, inS3(t, nil), "")
	if got, err := store.Resources(t.Context(), layers.Engine); err != nil || len(got) > 0 {
		t.Fatalf("before anything was written: %v, %v", got, err)
	}

	layer := unit(t, store, layers.Engine, map[string]any{"proof": map[string]any{"input": "x"}})
	if err := layer.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}

	got, err := store.Resources(t.Context(), layers.Engine)
	if err != nil || !slices.Equal(got, []string{"terraform_data.proof"}) {
		t.Errorf("the state holds %v, %v", got, err)
	}
	if _, err := store.Bucket.Get(t.Context(), "sandbox/engine/terraform.tfstate"); err != nil {
		t.Errorf("the state is elsewhere: %v", err)
	}
}

// The store goes away while a layer is applied: OpenTofu leaves the state in its own folder, which castle throws away with the run.
func TestAStateThatTheStoreDidNotTakeIsWrittenByTheNextRun(t *testing.T) {
	var away atomic.Bool
	encryption, err := secrets.StateEncryption("sandbox", "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	store := withTofu(t, inS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+file) && away.Load() {
				w.WriteHeader(http.StatusForbidden) // an answer that OpenTofu does not repeat the request for
				return
			}
			next.ServeHTTP(w, r)
		})
	}), encryption)
	store.Folder = t.TempDir()
	resources := map[string]any{"canary": map[string]any{"input": "in-the-clear"}}
	layer := unit(t, store, layers.Engine, resources)
	away.Store(true)
	if err := layer.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), ErroredFile) {
		t.Fatalf("the store is away, and OpenTofu says: %v", err)
	}
	left := filepath.Join(layer.WorkingDir(), ErroredFile)
	if text, err := os.ReadFile(left); err != nil || strings.Contains(string(text), "in-the-clear") {
		t.Fatalf("what OpenTofu leaves is not encrypted, or not there: %v", err)
	}
	if err := Rescue(left, store.Folder, layers.Engine); err != nil {
		t.Fatal(err)
	}
	away.Store(false)
	if did, err := store.PutBack(t.Context(), layers.Engine); err != nil || did == "" {
		t.Fatalf("%q, %v", did, err)
	}
	if changed, err := unit(t, store, layers.Engine, resources).Plan(t.Context()); err != nil || changed {
		t.Errorf("the next run would change something: %t, %v", changed, err)
	}
}

// withTofu gives a store the real OpenTofu, and the states' encryption.
func withTofu(t *testing.T, s Store, encryption string) Store {
	t.Helper()
	s.Tofu = filepath.Join(needs.Tool(t, "tofu"), "tofu")
	s.Environment = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret",
		"CHECKPOINT_DISABLE=1", "TF_ENCRYPTION=" + encryption}
	return s
}

// unit is a layer with these resources of type terraform_data and the backend that Terragrunt writes for it, initialised.
func unit(t *testing.T, s Store, layer string, resources map[string]any) *tfexec.Terraform {
	t.Helper()
	backend := Backends(s.Cluster, s.Folder)[layer]
	code, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"backend": map[string]any{backend.Name: backend.Config}},
		"resource":  map[string]any{"terraform_data": resources},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.tf.json"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	tofu, err := tfexec.NewTerraform(folder, s.Tofu)
	if err != nil {
		t.Fatal(err)
	}
	if err := tofu.SetEnv(forTerraformExec(s.Environment)); err != nil {
		t.Fatal(err)
	}
	if err := tofu.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tofu
}

// described is the sandbox with its states elsewhere.
func described(t *testing.T, states string) *config.Cluster {
	t.Helper()
	const sandbox = "../../../../terragrunt/live/sandbox"
	text, err := os.ReadFile(filepath.Join(sandbox, config.File))
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "\nstate:")
	if !found {
		t.Fatal("the description says nothing about the state")
	}
	folder := filepath.Join(t.TempDir(), "sandbox")
	if err := errors.Join(os.CopyFS(folder, os.DirFS(sandbox)), os.WriteFile(filepath.Join(folder, config.File), []byte(before+"\nstate: "+states+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cluster, err := config.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}
