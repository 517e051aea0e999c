package terragrunt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// folder makes a folder of units, each an OpenTofu module and the units that it depends on.
func folder(t *testing.T, units map[string][]string, modules map[string]string) Runner {
	t.Helper()
	programs := needs.Programs(t, "terragrunt", "tofu")
	dir := t.TempDir()
	for unit, needs := range units {
		var paths []string
		for _, need := range needs {
			paths = append(paths, `"../`+need+`"`)
		}
		config := "dependencies {\n  paths = [" + strings.Join(paths, ", ") + "]\n}\n"
		for name, text := range map[string]string{"terragrunt.hcl": config, "main.tf": modules[unit]} {
			if err := os.MkdirAll(filepath.Join(dir, unit), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, unit, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return Runner{Binary: programs["terragrunt"], Tofu: programs["tofu"], Dir: dir, Downloads: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1"}}
}

const fine = `resource "terraform_data" "it" {
  input = "fine"
}
`

func run(t *testing.T, r Runner, unit string, command ...string) (map[string][]string, error) {
	t.Helper()
	lines := map[string][]string{}
	r.Log = func(unit, line string) { lines[unit] = append(lines[unit], line) }
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := r.Run(ctx, unit, command...)
	return lines, err
}

func TestAUnitIsRunAlone(t *testing.T) {
	r := folder(t, map[string][]string{"1-first": nil, "2-second": {"1-first"}}, map[string]string{"1-first": fine, "2-second": fine})
	lines, err := run(t, r, "2-second", "apply", "-auto-approve")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(lines["2-second"], func(line string) bool { return strings.Contains(line, "Apply complete") }) || lines["1-first"] != nil {
		t.Errorf("printed %q", lines)
	}
	r.Plan = filepath.Join(t.TempDir(), "plan.json")
	if _, err := run(t, r, "1-first", "plan"); err != nil {
		t.Fatal(err)
	}
	if plan, err := os.ReadFile(r.Plan); err != nil || !strings.Contains(string(plan), `"terraform_data.it"`) {
		t.Errorf("the plan is %s, %v", plan, err)
	}
}

func TestAUnitThatFailsSaysWhy(t *testing.T) {
	broken := `resource "terraform_data" "it" {
  input = "broken"
  lifecycle {
    precondition {
      condition     = length(path.module) > 1000
      error_message = "This cannot be."
    }
  }
}
`
	r := folder(t, map[string][]string{"1-first": nil}, map[string]string{"1-first": broken})
	lines, err := run(t, r, "1-first", "apply", "-auto-approve")
	if err == nil || !strings.Contains(err.Error(), "terragrunt: exit status 1") {
		t.Fatalf("got %v", err)
	}
	if !slices.ContainsFunc(lines["1-first"], func(line string) bool {
		return strings.Contains(line, "Error: Resource precondition failed") && strings.Contains(line, "This cannot be.")
	}) {
		t.Errorf("the cause is not one message of %q", lines)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "1-first", "terragrunt.hcl"), []byte("include \"none\" {\n  path = \"none.hcl\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = run(t, r, "1-first", "apply", "-auto-approve"); err == nil || !strings.Contains(err.Error(), "none.hcl") {
		t.Errorf("what Terragrunt itself says is not in %v", err)
	}
}

func TestAnInterruptedRunEndsItsTools(t *testing.T) {
	slow := `resource "terraform_data" "it" {
  provisioner "local-exec" {
    command = "touch started; exec sleep 600"
  }
}
`
	r := folder(t, map[string][]string{"1-slow": nil}, map[string]string{"1-slow": slow})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.Log = func(_, line string) {
		if strings.Contains(line, "Executing") {
			cancel()
		}
	}
	began := time.Now()
	if err := r.Run(ctx, "1-slow", "apply", "-auto-approve"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("it took %s", took)
	}
}
