package charts

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// terragruntFolder is the project's own.
const terragruntFolder = "../../../../terragrunt"

// project is a folder terragrunt and what a tool's build keeps, of given files.
type project struct{ terragrunt, kept string }

func newProject(t *testing.T, files map[string]string) project {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return project{terragrunt: filepath.Join(folder, "terragrunt"), kept: filepath.Join(folder, "kept")}
}

func (p project) folderOf(tool string) (string, error) {
	folder := filepath.Join(p.kept, tool)
	_, err := os.Stat(folder)
	return folder, err
}

func TestAChartIsPutTogetherFromAToolAnOverlayAndDefinitions(t *testing.T) {
	p := newProject(t, map[string]string{
		"terragrunt/charts.yaml": `charts:
  one: {version: 1.0.0, tool: a, path: charts/one, overlay: laid, crds: [{tool: b, path: config/crd}]}
  elsewhere: {version: 2.0.0, repository: https://charts.example.org}
  later: {version: 2.0.0, repository: https://charts.example.org, platform: aws}
`,
		"terragrunt/laid/Chart.yaml":       "version: 1.0.0\n",
		"kept/a/charts/one/Chart.yaml":     "version: 0.9.0\n",
		"kept/a/charts/one/templates/x":    "x",
		"kept/a/charts/other/templates/no": "no",
		"kept/b/config/crd/kind.yaml":      "kind",
	})
	dest := filepath.Join(t.TempDir(), "charts")
	left, err := ComposeAll(p.terragrunt, dest, p.folderOf)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0] != "elsewhere" {
		t.Errorf("left to their repositories: %v", left)
	}
	for name, want := range map[string]string{"Chart.yaml": "version: 1.0.0\n", "templates/x": "x", "crds/b/kind.yaml": "kind"} {
		got, err := os.ReadFile(filepath.Join(dest, "one", name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dest, "one", "templates/no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another chart's file: %v", err)
	}
}

func TestAChartOfAnotherVersionThanPinnedIsRefused(t *testing.T) {
	p := newProject(t, map[string]string{
		"terragrunt/charts.yaml":       "charts:\n  one: {version: 1.0.0, tool: a, path: charts/one}\n",
		"kept/a/charts/one/Chart.yaml": "version: 0.9.0\n",
	})
	dest := filepath.Join(t.TempDir(), "charts")
	_, err := ComposeAll(p.terragrunt, dest, p.folderOf)
	if err == nil || !strings.Contains(err.Error(), "chart one: it is of version 0.9.0, but charts.yaml pins 1.0.0") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dest, "one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a chart was left: %v", err)
	}
}

func TestAListWithAnUnknownWordIsRefused(t *testing.T) {
	p := newProject(t, map[string]string{"terragrunt/charts.yaml": "charts:\n  one: {version: 1.0.0, repo: x}\n"})
	if _, err := Charts(p.terragrunt); err == nil || !strings.Contains(err.Error(), "repo") {
		t.Errorf("error %v", err)
	}
}

func TestAListWithAnImageOnUnknownNodesIsRefused(t *testing.T) {
	p := newProject(t, map[string]string{"terragrunt/charts.yaml": "charts:\n  one: {version: 1.0.0, images: [{image: 'a:1', nodes: all}, {image: 'b:1', nodes: some}]}\n"})
	if _, err := Charts(p.terragrunt); err == nil || !strings.Contains(err.Error(), `chart one has the image "b:1" on the nodes "some"`) {
		t.Errorf("error %v", err)
	}
}

var exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func TestEveryChartThatAModuleInstallsIsPinned(t *testing.T) {
	charts, err := Charts(terragruntFolder)
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]bool{}
	for _, chart := range charts {
		if !exactVersion.MatchString(chart.Version) {
			t.Errorf("%s is pinned to %q", chart.Name, chart.Version)
		}
		pinned[chart.Name] = true
	}
	for _, name := range []string{"metallb", "external-secrets", "longhorn", "longhorn-sandbox", "flux"} {
		if !pinned[name] {
			t.Errorf("%s is not in %s", name, ChartsFile)
		}
	}
}

// No test can install it: only its repository has it.
func TestTheImagesOfAChartThatCannotBeInstalledHereAreOfItsVersion(t *testing.T) {
	const longhorn = "longhorn"
	charts, err := Charts(terragruntFolder)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(charts, func(c Chart) bool { return c.Name == longhorn })
	if at < 0 || len(charts[at].Images) == 0 {
		t.Fatalf("no images of %s are listed", longhorn)
	}
	for _, image := range charts[at].Images {
		if !strings.HasSuffix(image.Name, ":v"+charts[at].Version) {
			t.Errorf("%s is not of version %s", image.Name, charts[at].Version)
		}
	}
}
