package state

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
	store := Store{
		Cluster: &description.Cluster{Name: "blue", State: description.State{
			Backend: description.StateS3, S3: description.S3{Bucket: "states", Endpoint: server.URL},
		}},
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
	if _, err := objects.HeadObject("states", "blue/engine/terraform.tfstate"); err != nil {
		t.Errorf("the state is elsewhere: %v", err)
	}
}
