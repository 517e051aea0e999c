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
	return Runner{Binary: programs["terragrunt"], Tofu: programs["tofu"], Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1"}}
}

const fine = `resource "terraform_data" "it" {
  input = "fine"
}
`

func run(t *testing.T, r Runner, command ...string) (Report, map[string][]string, error) {
	t.Helper()
	lines := map[string][]string{}
	r.Log = func(unit, line string) { lines[unit] = append(lines[unit], line) }
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	report, err := r.RunAll(ctx, command...)
	return report, lines, err
}

func TestTheUnitsRunInTheOrderOfTheirDependencies(t *testing.T) {
	r := folder(t, map[string][]string{"1-first": nil, "2-second": {"1-first"}}, map[string]string{"1-first": fine, "2-second": fine})
	report, lines, err := run(t, r, "apply", "-auto-approve")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Unit{}
	for _, unit := range report {
		if unit.Result != Succeeded {
			t.Errorf("%+v", unit)
		}
		byName[unit.Name] = unit
	}
	if len(byName) != 2 || byName["2-second"].Started.Before(byName["1-first"].Ended) {
		t.Errorf("got %+v", report)
	}
	for _, unit := range []string{"1-first", "2-second"} {
		if !slices.ContainsFunc(lines[unit], func(line string) bool { return strings.Contains(line, "Apply complete") }) {
			t.Errorf("%s printed %q", unit, lines[unit])
		}
	}
}

func TestAUnitThatFailsIsNamedAndHoldsBackWhatNeedsIt(t *testing.T) {
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
	r := folder(t, map[string][]string{"1-first": nil, "2-second": {"1-first"}, "3-third": nil},
		map[string]string{"1-first": broken, "2-second": fine, "3-third": fine})
	report, lines, err := run(t, r, "apply", "-auto-approve")
	var failed *Failed
	if !errors.As(err, &failed) || len(failed.Report.failed()) != 1 || failed.Report.failed()[0].Name != "1-first" {
		t.Fatalf("got %v", err)
	}
	results := map[string]string{}
	for _, unit := range report {
		results[unit.Name] = unit.Result
	}
	if results["2-second"] != EarlyExit || results["3-third"] != Succeeded {
		t.Errorf("got %v", results)
	}
	if !slices.ContainsFunc(lines["1-first"], func(line string) bool { return strings.Contains(line, "This cannot be.") }) {
		t.Errorf("the cause is not in %q", lines)
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
	if _, err := r.RunAll(ctx, "apply", "-auto-approve"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("it took %s", took)
	}
}
