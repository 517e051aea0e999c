package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/plan"
	"tazlab.net/castle/ci/cluster/status"
)

// printed runs a program of one command, as Main does, and gives all that it prints.
func printed(t *testing.T, run func(*cobra.Command) error) (text string, exit int) {
	t.Helper()
	root := Root("castle-test", "A program of one command", &cobra.Command{Use: "do", RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) }})
	root.SetArgs([]string{"do"})
	var out, errOut bytes.Buffer
	exit = execute(t.Context(), root, &out, &errOut)
	return out.String() + errOut.String(), exit
}

func TestNoFormOfASecretIsInAnError(t *testing.T) {
	for name, leak := range redacttest.Leaks(t) {
		// A command learns its secrets while it runs.
		got, exit := printed(t, func(*cobra.Command) error {
			redact.Add(redacttest.Token, redacttest.Key, redacttest.YAML)
			return fmt.Errorf("layer platform failed: %w", errors.New(leak))
		})
		if found := redacttest.Found(got); len(found) > 0 || !strings.HasPrefix(got, "castle: layer platform failed: ") || exit != 1 {
			t.Errorf("%s: %q in %s (exit status %d)", name, found, got, exit)
		}
	}
}

func TestNoFormOfASecretIsInAResult(t *testing.T) {
	redact.Add(redacttest.Token, redacttest.Key, redacttest.YAML)
	for name, leak := range redacttest.Leaks(t) {
		for _, result := range []rendering.Result{
			&status.Status{
				Layers: []status.LayerStatus{{Layer: "engine", Problem: leak}}, Nodes: []status.NodeStatus{{Name: "blue-cp-1", Problem: leak}},
				Gates: []status.GateStatus{{Gate: "gitops", Condition: leak, Seen: leak}},
			},
			&plan.Plan{Layers: []plan.LayerPlan{{Layer: "engine", Summary: leak, Changes: []string{leak + " will be created"}, Failed: true}}},
		} {
			for _, format := range []string{"text", "json", "markdown"} {
				got, exit := printed(t, func(cmd *cobra.Command) error {
					return (&Format{name: format}).Print(cmd, result)
				})
				if found := redacttest.Found(got); len(found) > 0 || !strings.Contains(got, redact.Mark) || exit != 0 {
					t.Errorf("%T as %s, %s: %q in\n%s", result, format, name, found, got)
				}
				file := filepath.Join(t.TempDir(), "report")
				said, exit := printed(t, func(cmd *cobra.Command) error {
					return (&Format{name: format, file: file}).PrintFindings(cmd, result, false)
				})
				if written, err := os.ReadFile(file); err != nil || string(written) != got || said != "" || exit != 0 {
					t.Errorf("in a file, %T as %s, %s: %v, printed %q, written\n%s", result, format, name, err, said, written)
				}
			}
		}
	}
}

func TestACommandThatHasSaidEverythingEndsWithItsStatus(t *testing.T) {
	if got, exit := printed(t, func(*cobra.Command) error { return Exit(3) }); got != "" || exit != 3 {
		t.Errorf("%q, exit status %d", got, exit)
	}
}
