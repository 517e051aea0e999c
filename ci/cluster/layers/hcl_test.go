package layers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/layers"
)

var clusters = []string{"blue", "sandbox"}

// The files are in the form that tofu fmt gives them, which another test holds them to, so that lines can be matched.
var (
	resourceLine = regexp.MustCompile(`(?m)^(?:resource|data|ephemeral) "([^"]+)"`)
	kindLine     = regexp.MustCompile(`(?m)^\s+kind\s+= "([^"]+)"`)
	pinLines     = regexp.MustCompile(`source = "([^"]+)"\n\s+# renovate: datasource=terraform-provider depName=(\S+)\n\s+version = "([^"]*)"`)
	exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
)

func TestModulesHoldOnlyWhatTheClusterItselfNeeds(t *testing.T) {
	types := map[string][]string{
		"secrets":          {"terraform_data"},
		"platform-proxmox": {"proxmox_virtual_environment_vm"},
		"platform-talos":   {"terraform_data"},
		"platform-aws": {
			"aws_ami", "aws_default_security_group", "aws_ebs_volume", "aws_iam_instance_profile", "aws_iam_role", "aws_iam_role_policy", "aws_instance",
			"aws_internet_gateway", "aws_lb", "aws_lb_listener", "aws_lb_target_group", "aws_lb_target_group_attachment", "aws_partition", "aws_route",
			"aws_route_table", "aws_route_table_association", "aws_security_group", "aws_subnet", "aws_volume_attachment", "aws_vpc",
			"aws_vpc_security_group_egress_rule", "aws_vpc_security_group_ingress_rule",
		},
		"engine":         {"helm_release", "kubectl_manifest", "kubernetes_secret_v1", "terraform_data"},
		"networking":     {"helm_release", "kubectl_manifest", "terraform_data"},
		"networking-aws": {"helm_release"},
		"storage":        {"helm_release", "kubectl_manifest"},
		"gitops":         {"helm_release", "kubectl_manifest", "terraform_data"},
	}
	kinds := map[string][]string{
		"engine":     {"ClusterSecretStore", "ExternalSecret"},
		"networking": {"IPAddressPool", "L2Advertisement", "Namespace"},
		"storage":    {"Namespace", "StorageClass"},
		"gitops":     {"ExternalSecret", "GitRepository", "Kustomization", "Namespace"},
	}
	modules := filepath.Join(terragrunt, "modules")
	for _, module := range folders(t, modules) {
		text := readAll(t, filepath.Join(modules, module), ".tf")
		if got := all(resourceLine, text); !slices.Equal(got, types[module]) {
			t.Errorf("%s has resources of the types %v, want %v", module, got, types[module])
		}
		if got := all(kindLine, text); !slices.Equal(got, kinds[module]) {
			t.Errorf("%s applies the kinds %v, want %v: applications belong to the GitOps repository", module, got, kinds[module])
		}
		if strings.Contains(text, "required_providers") || strings.Contains(text, "\nprovider ") {
			t.Errorf("%s pins a provider by itself, which root.hcl does for all", module)
		}
		delete(types, module)
	}
	if len(types) > 0 {
		t.Errorf("there are no modules %v", types)
	}
}

func TestKubernetesResourcesNameTheirVersion(t *testing.T) {
	text := readAll(t, filepath.Join(terragrunt, "modules"), ".tf")
	found := false
	for _, name := range all(resourceLine, text) {
		if strings.HasPrefix(name, "kubernetes_") {
			found = true
			if !strings.HasSuffix(name, "_v1") {
				t.Errorf("%s: its version is up to the provider; take %s_v1", name, name)
			}
		}
	}
	if !found {
		t.Error("no resource of the kubernetes provider was found: does this test still read what it should?")
	}
}

func TestProvidersArePinnedExactly(t *testing.T) {
	root, err := os.ReadFile(filepath.Join(terragrunt, "root.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{}
	for _, match := range pinLines.FindAllStringSubmatch(string(root), -1) {
		if match[1] != match[2] {
			t.Errorf("the marker of %s names %s", match[1], match[2])
		}
		if !exactVersion.MatchString(match[3]) {
			t.Errorf("%s is pinned to %q, which is not one version", match[1], match[3])
		}
		pins[match[1]] = match[3]
	}
	if got, want := len(pins), bytes.Count(root, []byte("source = \"")); got != want || got != 4 {
		t.Errorf("%d of %d providers have a source, a marker and a version: %v", got, want, pins)
	}
}

func TestUnitsSayOnlyWhatIsTheirOwn(t *testing.T) {
	for _, layer := range layerFolders {
		if lines := strings.Count(read(t, filepath.Join(terragrunt, layers.UnitsFolder, layer, "terragrunt.hcl")), "\n"); lines > 25 {
			t.Errorf("%s has %d lines: what is not about this layer belongs to root.hcl", layer, lines)
		}
	}
}

func TestNoSecretIsAnInputOfTerragrunt(t *testing.T) {
	text := readAll(t, terragrunt, ".hcl")
	// Inputs become part of what Terragrunt prints and caches. Secrets come as TF_VAR_… of the environment, which
	// OpenTofu reads by itself.
	for _, word := range []string{"infisical_flux_client", "infisical_workloads_client", "API_TOKEN\"", "AWS_SECRET_ACCESS_KEY\"", "get_env(\"TF_VAR"} {
		if strings.Contains(text, word) {
			t.Errorf("%s stands in an .hcl file", word)
		}
	}
	variables := readAll(t, filepath.Join(terragrunt, "modules", "engine"), "variables.tf")
	for _, block := range strings.Split(variables, "\nvariable ")[1:] {
		if strings.HasPrefix(block, `"infisical_`) && !strings.Contains(block, "sensitive   = true") {
			t.Errorf("a credential is not marked sensitive:\n%s", block)
		}
	}
}

var layerFolders = []string{"1-secrets", "2-platform", "3-engine", "4-networking", "5-storage", "6-gitops"}

func folders(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// readAll joins the files below folder whose names end so.
func readAll(t *testing.T, folder, suffix string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		data, err := os.ReadFile(name)
		text.WriteString("\n")
		text.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// all gives the first group of every match, sorted, each once.
func all(pattern *regexp.Regexp, text string) []string {
	var found []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
