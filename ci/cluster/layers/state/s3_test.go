package state

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/test/needs"
)

// A store with an endpoint and no region was once written by create and could not be opened by destroy and status.
func TestAStateThatALayerWroteToAStoreWithoutRegionsIsRead(t *testing.T) {
	tofu := filepath.Join(needs.Tool(t, "tofu"), "tofu")
	objects := s3mem.New()
	if err := objects.CreateBucket("states"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(objects).Server())
	t.Cleanup(server.Close)
	cluster := described(t, "{backend: s3, s3: {bucket: states, endpoint: 'https://s3.example.org'}}")
	cluster.State.S3.Endpoint = server.URL // a description would want https
	store := Store{
		Cluster:     cluster,
		Tofu:        tofu,
		Environment: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "CHECKPOINT_DISABLE=1"},
	}
	if got, err := store.Resources(t.Context(), layers.Engine); err != nil || len(got) > 0 {
		t.Fatalf("before anything was written: %v, %v", got, err)
	}

	// The layer, with the backend that Terragrunt writes for it.
	unit := t.TempDir()
	backend := Backends(store.Cluster, "")[layers.Engine]
	code, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"backend": map[string]any{backend.Name: backend.Config}},
		"resource":  map[string]any{"terraform_data": map[string]any{"proof": map[string]any{"input": "x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unit, "main.tf.json"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	layer, err := tfexec.NewTerraform(unit, tofu)
	if err != nil {
		t.Fatal(err)
	}
	if err := layer.SetEnv(forTerraformExec(store.Environment)); err != nil {
		t.Fatal(err)
	}
	if err := layer.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := layer.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}

	got, err := store.Resources(t.Context(), layers.Engine)
	if err != nil || !slices.Equal(got, []string{"terraform_data.proof"}) {
		t.Errorf("the state holds %v, %v", got, err)
	}
	if _, err := objects.HeadObject("states", "sandbox/engine/terraform.tfstate"); err != nil {
		t.Errorf("the state is elsewhere: %v", err)
	}
}

// described is the sandbox with its states elsewhere.
func described(t *testing.T, states string) *description.Cluster {
	t.Helper()
	text, err := os.ReadFile("../../../../terragrunt/live/sandbox/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "\nstate:")
	if !found {
		t.Fatal("the description says nothing about the state")
	}
	folder := filepath.Join(t.TempDir(), "sandbox")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, description.File), []byte(before+"\nstate: "+states+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cluster, err := description.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}
