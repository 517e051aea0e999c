package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/test/needs"
)

const (
	module     = "../../../terragrunt/modules/platform-aws"
	networking = "../../../terragrunt/modules/networking-aws"
)

// required is what root.hcl has for the layers.
const required = "terraform {\n  required_providers {\n    aws = {\n      source = \"hashicorp/aws\"\n    }\n  }\n}\n"

// tofu runs OpenTofu on copies of the module, with this package's provider.
type tofu struct {
	program string
	env     []string
}

func newTofu(t *testing.T) tofu {
	t.Helper()
	programs := needs.Programs(t, "tofu", "provider-helm")
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "terraform-provider-aws"), ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	settings := filepath.Join(folder, "settings.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"hashicorp/aws\" = %q\n    \"hashicorp/helm\" = %q\n  }\n}\n",
		folder, filepath.Dir(programs["terraform-provider-helm"]))
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return tofu{programs["tofu"], append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "AWS_REGION=eu-central-1")}
}

// run gives what OpenTofu prints, and whether it failed.
func (r tofu) run(t *testing.T, folder string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, r.program, arguments...)
	command.Dir, command.Env = folder, r.env
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("tofu %s: %w\n%s%s", strings.Join(arguments, " "), err, output.String(), problems.String())
	}
	return output.String(), nil
}

// change is one text of the module's that is replaced by another.
type change struct{ file, old, new string }

// ofModule is a copy of the module with one change, for a cluster of four machines.
func ofModule(t *testing.T, c change) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	if c.file != "" {
		name := filepath.Join(folder, c.file)
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), c.old) {
			t.Fatalf("%s has no %q (%v): does this test still break what it should?", c.file, c.old, err)
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster, err := config.Load("testdata/cloud")
	if err != nil {
		t.Fatal(err)
	}
	variables, err := json.Marshal(map[string]any{"cluster": cluster})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"providers.tf": required, "cluster.auto.tfvars.json": string(variables)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func (r tofu) plan(t *testing.T, c change) *tfjson.Plan {
	t.Helper()
	folder := ofModule(t, c)
	if _, err := r.run(t, folder, "plan", "-input=false", "-no-color", "-out=plan"); err != nil {
		t.Fatal(err)
	}
	text, err := r.run(t, folder, "show", "-json", "plan")
	if err != nil {
		t.Fatal(err)
	}
	var plan tfjson.Plan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	return &plan
}

// The module uses only what the provider has, and what its own tests want of it holds.
func TestTheModuleIsValidAndDoesWhatItsTestsSay(t *testing.T) {
	tofu := newTofu(t)
	folder := ofModule(t, change{})
	if _, err := tofu.run(t, folder, "validate", "-no-color"); err != nil {
		t.Error(err)
	}
	// The tests have a cluster of their own.
	if err := os.Remove(filepath.Join(folder, "cluster.auto.tfvars.json")); err != nil {
		t.Fatal(err)
	}
	output, err := tofu.run(t, folder, "test", "-no-color")
	if err != nil || !strings.Contains(output, "Success! 4 passed, 0 failed.") {
		t.Errorf("%v\n%s", err, output)
	}
}

// The chart is AWS's own, which no test has; that it takes these values was seen once, with the one of k8s.io/cloud-provider-aws v1.37.0.
func TestTheNetworkingModuleIsValid(t *testing.T) {
	tofu := newTofu(t)
	folder := t.TempDir()
	required := strings.ReplaceAll(required, "aws", "helm")
	err := errors.Join(os.CopyFS(folder, os.DirFS(networking)), os.WriteFile(filepath.Join(folder, "providers.tf"), []byte(required), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tofu.run(t, folder, "validate", "-no-color"); err != nil {
		t.Error(err)
	}
}

// What the provider does not have is found: else the test above would hold for anything.
func TestWhatTheProviderDoesNotTakeIsRefused(t *testing.T) {
	tofu := newTofu(t)
	for want, c := range map[string]change{
		"Unsupported argument":      {"main.tf", "each.value.instanceType", "each.value.instanceType\n  instance_typo = \"\""},
		"Missing required argument": {"firewall.tf", "ip_protocol                  = each.value.protocol\n", ""},
		"Unsupported block type":    {"main.tf", "metadata_options {", "metadata_option {"},
		"Invalid resource type":     {"network.tf", `resource "aws_internet_gateway"`, `resource "aws_internet_gate"`},
		"Unsupported attribute":     {"outputs.tf", "aws_lb.api.dns_name", "aws_lb.api.dns"},
	} {
		if _, err := tofu.run(t, ofModule(t, c), "validate", "-no-color"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
