// Package examples has no code. Its tests read the repositories in examples as castle's own readers do. That their workflows keep
// the rules and that their commands are the module's is held by ci/test/workflows, ci/test/calls and actionlint.
package examples

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/gitops/gitopscheck"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/settings"
)

const folder = "../../../examples"

func TestEachExampleIsInTheListAndHasAReadme(t *testing.T) {
	list := read(t, filepath.Join(folder, "README.md"))
	for _, name := range glob(t, "*") {
		if filepath.Base(name) == "README.md" {
			continue
		}
		if !strings.Contains(list, "[`"+filepath.Base(name)+"`]") {
			t.Errorf("examples/README.md does not name %s", filepath.Base(name))
		}
		read(t, filepath.Join(name, "README.md"))
	}
}

func TestEveryExampleHasSettingsThatCastleReads(t *testing.T) {
	for _, name := range glob(t, "*/castle.yaml") {
		file, err := settings.Load(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if len(file.Sites) == 0 {
			continue
		}
		at, err := settings.Resolve(file, settings.Settings{}, settings.Cluster{}, settings.ForManifest)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		path := filepath.Join(filepath.Dir(name), at.Manifest)
		source, err := os.ReadFile(path)
		if os.IsNotExist(err) { // in another repository
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manifest.Current(source, manifest.Selector{Image: at.Image}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheBlogsWorkflowIsTenLines(t *testing.T) {
	if lines := strings.Count(read(t, filepath.Join(folder, "blog/.github/workflows/publish.yaml")), "\n"); lines > 10 {
		t.Errorf("it has %d lines", lines)
	}
}

func TestEveryClusterIsValidAndTouchesNoOtherOfItsRepository(t *testing.T) {
	seen := 0
	repositories := map[string][]string{}
	for _, name := range glob(t, "*/clusters/*/cluster.yaml") {
		repository := filepath.Dir(filepath.Dir(filepath.Dir(name)))
		repositories[repository] = append(repositories[repository], name)
	}
	for _, names := range repositories {
		addresses, ids := map[netip.Addr]string{}, map[int]string{}
		for _, name := range names {
			c, err := config.Load(filepath.Dir(name))
			if err != nil {
				t.Errorf("%s:\n%v", name, err)
				continue
			}
			seen++
			for _, address := range c.Addresses() {
				if address == c.Network.Gateway || slices.Contains(c.Network.DNS, address) {
					continue // of all who are there
				}
				if other := addresses[address]; other != "" {
					t.Errorf("%s and %s have %s", other, c.Name, address)
				}
				addresses[address] = c.Name
			}
			for id := c.VMIDs.First; id <= c.VMIDs.Last; id++ {
				if other := ids[id]; other != "" {
					t.Errorf("%s and %s have the VM id %d", other, c.Name, id)
				}
				ids[id] = c.Name
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d clusters were read", seen)
	}
}

// It is what the example's own workflow runs.
func TestTheFluxRepositoryHasNothingThatCheckGitopsFinds(t *testing.T) {
	report, err := gitopscheck.Check(t.Context(), gitopscheck.Options{Dir: filepath.Join(folder, "flux-repository")})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		t.Errorf("%s:%d: %s: %s", finding.File, finding.Line, finding.Rule, finding.Message)
	}
	if report.Objects < 2 {
		t.Errorf("it looked at %d objects", report.Objects)
	}
}

// Nobody's name gets into an example: whoever copies one would publish into somebody's repository.
func TestExamplesNameNobody(t *testing.T) {
	hosts := regexp.MustCompile(`https?://([^/\s"'` + "`" + `]+)`)
	known := []string{"github.com", "pve.example.org:8006", "s3.example.org", "eu.infisical.com"}
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := read(t, name)
		for _, match := range hosts.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(known, match[1]) {
				t.Errorf("%s names %s", name, match[1])
			}
		}
		for _, match := range regexp.MustCompile(`github\.com/([A-Za-z-]+)/`).FindAllStringSubmatch(text, -1) {
			if match[1] != "OWNER" {
				t.Errorf("%s names %s", name, match[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
