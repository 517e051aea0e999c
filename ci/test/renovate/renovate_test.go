// Package renovate has no code. Its tests hold renovate.json to the repository: a pin that no manager reads is never updated,
// and nobody notices.
package renovate

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

type config struct {
	IgnorePaths    []string  `json:"ignorePaths"`
	CustomManagers []manager `json:"customManagers"`
	PackageRules   []struct {
		GroupName         string   `json:"groupName"`
		MatchPackageNames []string `json:"matchPackageNames"`
	} `json:"packageRules"`
}

type manager struct {
	Description         string   `json:"description"`
	ManagerFilePatterns []string `json:"managerFilePatterns"`
	MatchStrings        []string `json:"matchStrings"`
	DepNameTemplate     string   `json:"depNameTemplate"`
	DatasourceTemplate  string   `json:"datasourceTemplate"`
}

// pin is what a manager reads in a file: the datasource and the package, with the offsets of the text.
type pin struct {
	manager, file, datasource, name, version string
	start, end                               int
}

// pins are all that a manager reads in a text.
func (m manager) pins(t *testing.T, file, text string) []pin {
	t.Helper()
	var all []pin
	if !slices.ContainsFunc(m.ManagerFilePatterns, func(pattern string) bool { return compiled(t, strings.Trim(pattern, "/")).MatchString(file) }) {
		return nil
	}
	for _, expression := range m.MatchStrings {
		of := compiled(t, expression)
		for _, at := range of.FindAllStringSubmatchIndex(text, -1) {
			group := func(name, otherwise string) string {
				if i := of.SubexpIndex(name); i >= 0 && at[2*i] >= 0 {
					return text[at[2*i]:at[2*i+1]]
				}
				return otherwise
			}
			all = append(all, pin{
				m.Description, file, group("datasource", m.DatasourceTemplate), group("depName", m.DepNameTemplate), group("currentValue", ""), at[0], at[1],
			})
		}
	}
	return all
}

func compiled(t *testing.T, expression string) *regexp.Regexp {
	t.Helper()
	of, err := regexp.Compile(expression)
	if err != nil {
		t.Fatalf("renovate.json: %v", err)
	}
	return of
}

func read(t *testing.T) config {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "renovate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// texts are the repository's files in which a pin may stand.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "testdata", "node_modules", "realsites"}, entry.Name()) || entry.Name() == "internal" && strings.Contains(name, ".dagger") {
				return fs.SkipDir
			}
			return nil
		}
		switch extension := filepath.Ext(name); {
		case strings.HasSuffix(name, "_test.go"), entry.Name() == "renovate.json", entry.Name() == "images.local.yaml":
			return nil
		case !slices.Contains([]string{".yaml", ".go", ".hcl", ".json", ".tf", ".sh", ".mod"}, extension):
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(repository, name)
		all[filepath.ToSlash(relative)] = string(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// marker is a line that says where the version below it comes from.
var marker = regexp.MustCompile(`(?m)^\s*(?:#|//) renovate: datasource=.*$`)

func TestEveryMarkerIsReadByOneManager(t *testing.T) {
	managers := read(t).CustomManagers
	markers := 0
	for file, text := range texts(t) {
		for _, at := range marker.FindAllStringIndex(text, -1) {
			markers++
			var by []string
			for _, m := range managers {
				for _, pin := range m.pins(t, file, text) {
					if pin.start < at[1] && at[0] < pin.end {
						by = append(by, m.Description)
					}
				}
			}
			if len(by) != 1 {
				t.Errorf("%s:%d: %s: read by %d managers of renovate.json: %q", file, 1+strings.Count(text[:at[1]], "\n"), strings.TrimSpace(text[at[0]:at[1]]), len(by), by)
			}
		}
	}
	if markers < 50 {
		t.Errorf("only %d markers were found", markers)
	}
}

func TestEveryManagerReadsAPin(t *testing.T) {
	files := texts(t)
	for _, m := range read(t).CustomManagers {
		for i, pattern := range m.ManagerFilePatterns {
			alone := m
			alone.ManagerFilePatterns = []string{pattern}
			some := false
			for file, text := range files {
				for _, pin := range alone.pins(t, file, text) {
					some = true
					if pin.datasource == "" || pin.name == "" || pin.version == "" {
						t.Errorf("%s: %q reads no datasource, name or version: %+v", file, m.Description, pin)
					}
				}
			}
			if !some {
				t.Errorf("renovate.json: %q reads nothing by its pattern %d, %s", m.Description, i, pattern)
			}
		}
	}
}

// Renovate's recommended settings leave out every folder named test or examples, unless a repository says itself what is left out.
func TestNoFileWithAPinIsLeftOut(t *testing.T) {
	c := read(t)
	if len(c.IgnorePaths) == 0 {
		t.Fatal("renovate.json has no ignorePaths: those of config:recommended leave out test and examples")
	}
	for _, path := range c.IgnorePaths {
		form := strings.NewReplacer("**/", "(.*/)?", "**", ".*", "*", "[^/]*", ".", `\.`).Replace(path)
		for file, text := range texts(t) {
			for _, m := range c.CustomManagers {
				if len(m.pins(t, file, text)) > 0 && compiled(t, "^"+form+"$").MatchString(file) {
					t.Errorf("%s has a pin that %q reads, and is left out by %s", file, m.Description, path)
				}
			}
		}
	}
}

// What is of one release has to be updated in one pull request: the first name of each row says what for.
func TestWhatMovesTogetherIsInOneGroup(t *testing.T) {
	c := read(t)
	names := map[string]bool{}
	for file, text := range texts(t) {
		for _, m := range c.CustomManagers {
			for _, pin := range m.pins(t, file, text) {
				names[pin.name] = true
			}
		}
	}
	group := func(name string) string {
		for _, rule := range c.PackageRules {
			if rule.GroupName != "" && slices.Contains(rule.MatchPackageNames, name) {
				return rule.GroupName
			}
		}
		return ""
	}
	for _, row := range [][]string{
		{"dagger/dagger", "github.com/dagger/dagger", "registry.dagger.io/engine", "registry.dagger.io/dagger-helm"},
		{"github.com/gohugoio/hugo", "ghcr.io/gohugoio/hugo"},
		{"github.com/opentofu/opentofu", "ghcr.io/opentofu/opentofu"},
		{"github.com/gruntwork-io/terragrunt", "gruntwork-io/terragrunt"},
		{"github.com/bpg/terraform-provider-proxmox", "bpg/proxmox"},
		{"go.etcd.io/etcd/server/v3", "registry.k8s.io/etcd"},
		{"k8s.io/kubernetes", "registry.k8s.io/kube-apiserver", "registry.k8s.io/kube-controller-manager", "registry.k8s.io/kube-scheduler"},
		{"github.com/siderolabs/talos", "github.com/containerd/containerd/v2", "github.com/coredns/coredns", "github.com/flannel-io/flannel"},
		{"go.universe.tf/metallb", "quay.io/metallb/controller", "metallb"},
		{"github.com/external-secrets/external-secrets", "ghcr.io/external-secrets/external-secrets", "external-secrets"},
		{"github.com/fluxcd/source-controller", "ghcr.io/fluxcd/source-controller", "github.com/fluxcd/kustomize-controller", "ghcr.io/fluxcd/kustomize-controller",
			"github.com/fluxcd/helm-controller", "ghcr.io/fluxcd/helm-controller", "github.com/fluxcd/notification-controller", "ghcr.io/fluxcd/notification-controller"},
	} {
		for _, name := range row {
			if !names[name] {
				t.Errorf("no manager reads a pin of %s", name)
			}
			if got, want := group(name), group(row[0]); want == "" || got != want {
				t.Errorf("%s is in the group %q, and %s in %q", name, got, row[0], want)
			}
		}
	}
	for _, rule := range c.PackageRules {
		for _, name := range rule.MatchPackageNames {
			if rule.GroupName != "" && !names[name] && name != "dagger.io/dagger" { // Renovate's own manager of Go modules reads that one
				t.Errorf("renovate.json: the group %q names %s, which no pin has", rule.GroupName, name)
			}
		}
	}
}
