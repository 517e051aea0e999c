package gitopsrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	recipient = "age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg"
	infisical = `  infisical:
    url: https://eu.infisical.com
    project: 7f0c4b0e-5a53-4f39-9a0e-0d6b0a1c2d3e
    slug: tazlab
    environment: prod
    path: /clusters/blue
`
)

// clusterFolder is that of the cluster green, which is blue in everything else; edits are pairs of a text and what replaces it.
func clusterFolder(t testing.TB, edits ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "green")
	description := strings.NewReplacer("name: blue", "name: green", "clusters/blue", "clusters/green").Replace(string(text))
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(description, edits[i]) {
			t.Fatalf("cluster.yaml has no %q", edits[i])
		}
		description = strings.Replace(description, edits[i], edits[i+1], 1)
	}
	for name, text := range map[string]string{
		"cluster.yaml":      description,
		"secrets.sops.yaml": "A: ENC[AES256_GCM,data:x]\nsops:\n  age:\n    - recipient: " + recipient + "\n      enc: x\n",
	} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// withoutInfisical are the edits that make a cluster's secrets come from SOPS alone.
func withoutInfisical() []string {
	return []string{strings.ReplaceAll(infisical, "clusters/blue", "clusters/green"), "  infisical: none\n"}
}

// full is a request for everything that is usual.
func full(folder string) Request {
	return Request{Folder: folder, Options: Options{Domain: "example.org", ACMEEmail: "me@example.org", BlogImage: "ghcr.io/me/blog"}}
}

func rendered(t testing.TB, request Request) Files {
	t.Helper()
	files, err := Render(request)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
