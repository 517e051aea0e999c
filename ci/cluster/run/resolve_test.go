package run

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/sopstest"
)

// layersFolder is the folder of the layers.
const layersFolder = "../../../terragrunt"

// newCluster is blue with all its secrets, and an Infisical of its own that holds no PKI yet.
func newCluster(t *testing.T, remote map[string]string) (*Cluster, *infisical.Server) {
	t.Helper()
	key := sopstest.NewKey(t)
	folder := filepath.Join(t.TempDir(), "blue")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(layersFolder + "/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "cluster.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), map[string]string{
		secrets.StatePassphrase: "a passphrase that is long", secrets.InfisicalClientID: "client", secrets.InfisicalClientSecret: "canary",
		secrets.InfisicalFluxClientID: "id-of-a-reader-f", secrets.InfisicalFluxClientSecret: "canary",
		secrets.InfisicalWorkloadsClientID: "id-of-a-reader-w", secrets.InfisicalWorkloadsClientSecret: "canary",
		secrets.ProxmoxAPIToken: "castle@pve!test=5f8a9c0e-0000-4000-8000-0123456789ab", secrets.AWSAccessKeyID: "key", secrets.AWSSecretAccessKey: "canary",
	})
	c := &Cluster{Folder: folder, Layers: layersFolder, State: t.TempDir(), AgeKey: key.String()}
	if err := c.Load(); err != nil {
		t.Fatal(err)
	}
	at := &c.Description.Secrets.Infisical
	server, err := infisical.Open("", infisical.Seed{Projects: []infisical.Project{{
		ID: at.Project, Slug: at.Slug, Clients: []infisical.Client{{ID: "client", Secret: "canary"},
			{ID: "id-of-a-reader-f", Secret: "canary", Permissions: []infisical.Permission{infisical.Reading(at.Environment, at.FluxPath)}},
			{ID: "id-of-a-reader-w", Secret: "canary", Permissions: []infisical.Permission{infisical.Reading(at.Environment, at.WorkloadsPath)}}},
		Environments: map[string]map[string]map[string]string{at.Environment: {at.Path: {}, at.FluxPath: remote}},
	}}}, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(server)
	t.Cleanup(served.Close)
	at.URL = served.URL
	return c, server
}

func TestNothingIsMadeWhereSomethingSpeaksAgainstIt(t *testing.T) {
	whole := map[string]string{secrets.GitOpsUsername: "flux", secrets.GitOpsToken: "canary", secrets.FluxAgeKey: sopstest.NewKey(t).String()}
	against := errors.New("somebody answers there")
	for name, story := range map[string]struct {
		remote    map[string]string
		objection error
		failed    string // what the error says
		made      bool
	}{
		"nothing does":             {remote: whole, made: true},
		"something does":           {remote: whole, objection: against},
		"a secret is missing, too": {remote: map[string]string{}, objection: against, failed: "GITOPS_TOKEN is missing"},
	} {
		c, server := newCluster(t, story.remote)
		access, objection, err := c.resolve(t.Context(), true, func(_ context.Context, values func() *secrets.Values) error {
			if known := values(); (known == nil) != (story.failed != "") {
				t.Errorf("%s: the look is given %v", name, known)
			}
			return story.objection
		})
		at := c.Description.Secrets.Infisical
		_, made := server.Get(at.Project, at.Environment, at.Path, secrets.TalosSecrets)
		if made != story.made || (access != nil) != story.made || !errors.Is(objection, story.objection) || (err != nil) != (story.failed != "") || err != nil && !strings.Contains(err.Error(), story.failed) {
			t.Errorf("%s: the PKI was made: %v; %v, %v", name, made, objection, err)
		}
		if access == nil {
			continue
		}
		// It is derived beside Infisical's answers, out of the files alone.
		want, err := secrets.StateEncryption("blue", "a passphrase that is long")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := access.encryption(); err != nil || got != want {
			t.Errorf("%s: the states are encrypted by another passphrase than that of the files: %v", name, err)
		}
	}
}
