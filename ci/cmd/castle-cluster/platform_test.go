package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/credentials"
)

// TestAClusterOnAWSIsDescribedAndNothingElse calls every verb on one: what only reads the description does so, and all others refuse it in one
// line, before they have made a folder or asked for a secret.
func TestAClusterOnAWSIsDescribedAndNothingElse(t *testing.T) {
	text, err := os.ReadFile("../../cluster/config/testdata/cloud.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder, states := filepath.Join(t.TempDir(), "cloud"), filepath.Join(t.TempDir(), "states")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "cluster.yaml"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOPS_AGE_KEY", "")
	t.Setenv("CASTLE_SEAL_KEY", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	call := func(c *clusterFlags, command *cobra.Command, arguments ...string) (string, error) {
		c.add(command)
		var output bytes.Buffer
		command.SetArgs(append([]string{"--folder=" + folder, "--layers=../../../terragrunt", "--state=" + states}, arguments...))
		command.SetOut(&output)
		command.SetErr(&output)
		err := command.ExecuteContext(t.Context())
		return output.String(), err
	}
	var c clusterFlags
	for _, command := range []*cobra.Command{c.validate(), c.describe()} {
		if output, err := call(&c, command); err != nil || !strings.Contains(output, "cloud") || strings.Contains(output, "invalid") {
			t.Errorf("%s: %v\n%s", command.Name(), err, output)
		}
	}
	for command, arguments := range map[*cobra.Command][]string{
		c.create(): nil, c.plan(): nil, c.doctor(): nil, c.status(): nil, c.outputs(): nil, c.timeline(): {"--out=" + filepath.Join(folder, "timeline")}, c.forget(): {"--world=" + t.TempDir()},
		c.destroy(): {"--confirm=cloud"}, c.nuclearWipe(): {"--confirm=cloud"}, c.removeNode(): {"--node=cloud-worker-1", "--confirm=cloud-worker-1"},
		c.stateList(): nil, c.sealed("kubeconfig", "", credentials.Kubeconfig): nil,
	} {
		_, err := call(&c, command, arguments...)
		if err == nil || !strings.HasPrefix(err.Error(), "cluster cloud is on platform aws") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", command.Name(), err)
		}
	}
	if _, err := os.Stat(states); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder for states was made: %v", err)
	}
}
