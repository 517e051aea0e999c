package layers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/layers"
)

const terragrunt = "../../../terragrunt"

func TestAGateStandsInItsLayer(t *testing.T) {
	for gate, layer := range map[string]string{"networking-webhook": "networking", "networking": "networking", "gitops-controllers": "gitops", "none-of-ours": "none-of-ours"} {
		if got := layers.OfGate(gate).Name; got != layer {
			t.Errorf("%s: %s", gate, got)
		}
	}
}

func TestAClusterMayDoWithoutALayer(t *testing.T) {
	names := func(list []layers.Layer) string {
		var names []string
		for _, layer := range list {
			names = append(names, layer.Name)
		}
		return strings.Join(names, " ")
	}
	pool, volumes := config.LoadBalancer{Pool: []string{"192.0.2.0/24"}}, config.Storage{Replicas: 1}
	for _, c := range []struct {
		described   config.Cluster
		of, without string
	}{
		{config.Cluster{LoadBalancer: pool, Storage: volumes}, "secrets platform engine networking storage gitops", ""},
		{config.Cluster{LoadBalancer: pool}, "secrets platform engine networking gitops", "storage"},
		{config.Cluster{Storage: volumes}, "secrets platform engine storage gitops", "networking"},
		{config.Cluster{}, "secrets platform engine gitops", "networking storage"},
	} {
		if of, without := names(layers.Of(&c.described)), names(layers.Without(&c.described)); of != c.of || without != c.without {
			t.Errorf("it has %q, and does without %q; want %q and %q", of, without, c.of, c.without)
		}
	}
}

func TestEveryGateIsOfALayer(t *testing.T) {
	var ours []string
	for _, layer := range layers.All {
		ours = append(ours, layer.Gates...)
	}
	if got := gates.Names(); !slices.Equal(got, ours) {
		t.Errorf("there are the gates %v, the table says %v", got, ours)
	}
}

// The units say what runs when; the table must say the same.
var (
	moduleLine   = regexp.MustCompile(`source = [^"]*"\.\./\.\./modules//([a-z-]+)"`)
	pathsLine    = regexp.MustCompile(`paths = (?:get_terraform_command\(\) == "destroy" \? (\[[^]]*\]) : )?(\[[^]]*\])`)
	needed       = regexp.MustCompile(`"\.\./([^"]+)"`)
	chartInput   = regexp.MustCompile(`(?m)^  chart = include\.root\.locals\.cluster\.platform == "sandbox" \? "([a-z-]+)" : "([a-z-]+)"$`)
	chartInUse   = regexp.MustCompile(`chart\s+= "\$\{var\.charts\}/([a-z-]+)"`)
	releaseLines = regexp.MustCompile(`resource "helm_release" "\w+" \{\n  name +=\s"([a-z-]+)"\n  namespace += local\.namespace\n`)
	namespace    = regexp.MustCompile(`(?m)^  namespace = "([a-z-]+)"`)
	waitCommands = regexp.MustCompile(`command\s+= "([a-z-]+)"`)
)

func TestTheTableSaysWhatTheUnitsSay(t *testing.T) {
	units, err := filepath.Glob(filepath.Join(terragrunt, layers.UnitsFolder, "*", "terragrunt.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, layer := range layers.All {
		folders = append(folders, filepath.Join(terragrunt, layers.UnitsFolder, layer.Folder, "terragrunt.hcl"))
	}
	if !slices.Equal(units, folders) {
		t.Errorf("there are the units %v, in the table %v", units, folders)
	}
	for _, layer := range layers.All {
		unit := read(t, filepath.Join(terragrunt, layers.UnitsFolder, layer.Folder, "terragrunt.hcl"))
		needs, goesBefore := pathsOf(unit)
		if !slices.Equal(needs, layer.Needs) {
			t.Errorf("unit %s needs %v, the table says %v", layer.Folder, needs, layer.Needs)
		}
		if want := layers.Edges()[layer.Name]; !slices.Equal(goesBefore, want) {
			t.Errorf("unit %s is destroyed before %v, the table says %v", layer.Folder, goesBefore, want)
		}
		module := moduleLine.FindStringSubmatch(unit)
		if module == nil {
			t.Errorf("unit %s names no module", layer.Folder)
			continue
		}
		code := read(t, filepath.Join(terragrunt, "modules", module[1], "main.tf"))
		var real, stand string
		if match := chartInUse.FindStringSubmatch(code); match != nil {
			real, stand = match[1], match[1]
		}
		if match := chartInput.FindStringSubmatch(unit); match != nil {
			real, stand = match[2], match[1]
		}
		for platform, chart := range map[string]string{config.PlatformProxmox: real, config.PlatformSandbox: stand} {
			if got := layer.Chart(platform); got != chart {
				t.Errorf("unit %s installs %q on %s, the table says %q", layer.Folder, chart, platform, got)
			}
		}
		var release layers.Release
		if match := releaseLines.FindStringSubmatch(code); match != nil {
			release = layers.Release{Namespace: namespace.FindStringSubmatch(code)[1], Name: match[1]}
		}
		if layer.Release != release {
			t.Errorf("the module of layer %s installs %+v, the table says %+v", layer.Name, release, layer.Release)
		}
		var gates []string
		for _, match := range waitCommands.FindAllStringSubmatch(code, -1) {
			gates = append(gates, match[1])
		}
		if layer.Name != layers.Secrets { // castle waits for the own gate of every other layer at its end
			gates = append(gates, layer.Name)
		}
		byHand := func(gate string) bool { return gate == "gitops-controllers" }
		if want := slices.DeleteFunc(slices.Clone(layer.Gates), byHand); !slices.Equal(gates, want) {
			t.Errorf("unit %s waits for the gates %v, the table says %v", layer.Folder, gates, want)
		}
	}
}

// pathsOf are what a unit depends on, by the layers' names: for every command but destroy, and for that.
func pathsOf(unit string) (needs, goesBefore []string) {
	list := pathsLine.FindStringSubmatch(unit)
	if list == nil {
		return nil, nil
	}
	for _, match := range needed.FindAllStringSubmatch(list[2], -1) {
		needs = append(needs, layers.OfFolder(match[1]).Name)
	}
	for _, match := range needed.FindAllStringSubmatch(list[1], -1) {
		goesBefore = append(goesBefore, layers.OfFolder(match[1]).Name)
	}
	if list[1] == "" {
		goesBefore = needs
	}
	return needs, goesBefore
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}
