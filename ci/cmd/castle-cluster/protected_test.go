package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestAProtectedClusterIsNotRemoved calls both ways to remove one, with all confirmations, and its SOPS key at hand. Nothing answers where the
// cluster is said to be: whoever gets beyond the protection fails otherwise.
func TestAProtectedClusterIsNotRemoved(t *testing.T) {
	const live = "../../../terragrunt/live/sandbox"
	folder := filepath.Join(t.TempDir(), "sandbox")
	if err := os.CopyFS(folder, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	description := filepath.Join(folder, "cluster.yaml")
	text, err := os.ReadFile(description)
	if err == nil {
		err = os.WriteFile(description, append(text, "deletionProtection: true\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(live, "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOPS_AGE_KEY", string(key))
	var flags clusterFlags
	for _, command := range []*cobra.Command{flags.destroy(), flags.nuclearWipe()} {
		flags.add(command)
		command.SetArgs([]string{"--folder=" + folder, "--layers=../../../terragrunt", "--state=" + t.TempDir(), "--confirm=sandbox"})
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), command.Name()+" is refused: cluster sandbox has deletionProtection: true in its cluster.yaml") {
			t.Errorf("%s: %v", command.Name(), err)
		}
	}
}
