package charts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/tell"
)

// shop serves a chart and its CRDs from a list without digests.
func shop(t *testing.T) (files map[string][]byte, p project) {
	t.Helper()
	files = map[string][]byte{
		"/index.yaml": []byte("entries:\n  one: [{version: 1.0.0, urls: [one.tgz]}]\n"),
		"/one.tgz":    archive(t, map[string]string{"one/Chart.yaml": "version: 1.0.0\n"}),
		"/kind.yaml":  []byte("kind: CustomResourceDefinition\n"),
	}
	url := repository(t, files)
	return files, newProject(t, map[string]string{"terragrunt/charts.yaml": `# A comment.
charts:
  one: # stays
    version: 1.0.0
    repository: ` + url + `
    crds:
      - tool: b
        path: c
        url: ` + url + `/kind.yaml # this, too
  own:
    version: 3.0.0
    overlay: own
`, "terragrunt/own/Chart.yaml": "version: 3.0.0\n"})
}

func list(t *testing.T, p project, text []byte) {
	t.Helper()
	file := filepath.Join(p.terragrunt, ChartsFile)
	if err := errors.Join(os.Chmod(file, 0o644), os.WriteFile(file, text, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsPinnedIsFetchedAndNothingElse(t *testing.T) {
	files, p := shop(t)
	before, err := os.ReadFile(filepath.Join(p.terragrunt, ChartsFile))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Pin(t.Context(), p.terragrunt)
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	pins := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "digest: sha256:") {
			pins++
			continue
		}
		others = append(others, line)
	}
	if pins != 2 || strings.Join(others, "") != string(before) || !strings.Contains(string(text), fmt.Sprintf("\n        digest: sha256:%x\n", sha256.Sum256(files["/kind.yaml"]))) {
		t.Fatalf("pinned:\n%s", text)
	}
	list(t, p, text)
	if err := FetchAll(t.Context(), p.terragrunt, filepath.Join(t.TempDir(), "charts")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/one.tgz", "/kind.yaml"} {
		good := files[name]
		files[name] = bytes.Clone(good)
		files[name][len(good)-1] ^= 1
		dest := filepath.Join(t.TempDir(), "charts")
		tell.Fault(t, "%s has another byte than pinned", name)
		err := FetchAll(t.Context(), p.terragrunt, dest)
		tell.Observation(t, 0, "%v", err)
		if err == nil || !strings.Contains(err.Error(), name+" has the digest sha256:") || !strings.Contains(err.Error(), "charts.yaml pins sha256:") {
			t.Errorf("%s with another byte: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dest, "one")); !os.IsNotExist(err) {
			t.Errorf("%s with another byte left a chart: %v", name, err)
		}
		again, err := Pin(t.Context(), p.terragrunt)
		if err != nil || strings.Count(string(again), "digest:") != 2 || bytes.Equal(again, text) {
			t.Errorf("pinned again: %v\n%s", err, again)
		}
		files[name] = good
	}
}

func TestWhatIsNotPinnedIsWhatTheFirstUseFound(t *testing.T) {
	files, p := shop(t)
	states := t.TempDir()
	use := func() error {
		dest := filepath.Join(t.TempDir(), "charts")
		if err := FetchAll(t.Context(), p.terragrunt, dest); err != nil {
			t.Fatal(err)
		}
		return CheckDownloads(dest, states)
	}
	for range 2 {
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	files["/kind.yaml"] = append(files["/kind.yaml"], '\n')
	for range 2 { // what was refused is not what the next use goes by
		if err := use(); err == nil || !strings.Contains(err.Error(), "/kind.yaml has the digest sha256:") || strings.Contains(err.Error(), "one.tgz") {
			t.Errorf("another byte: %v", err)
		}
	}
	text, err := Pin(t.Context(), p.terragrunt)
	if err != nil {
		t.Fatal(err)
	}
	list(t, p, text)
	if err := use(); err != nil {
		t.Errorf("pinned: %v", err)
	}
}

func TestADigestThatIsNoneIsRefused(t *testing.T) {
	for _, digest := range []string{"sha256:abc", strings.Repeat("0", 64), "sha256:" + strings.Repeat("G", 64)} {
		p := newProject(t, map[string]string{"terragrunt/charts.yaml": "charts:\n  one: {version: 1.0.0, digest: '" + digest + "'}\n"})
		if _, err := Charts(p.terragrunt); err == nil || !strings.Contains(err.Error(), "chart one has the digest") {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

func TestChartsThatWereMadeOfFilesAreNotCompared(t *testing.T) {
	if err := CheckDownloads(t.TempDir(), filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}
