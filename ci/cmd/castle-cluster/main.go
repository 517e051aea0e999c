// Command castle-cluster works on a cluster, inside the module's containers: the commands of a person's verbs, and those
// that the layers call. This package holds commands and flags only; what they do stands in ci/cluster.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/nodump"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/cluster/credentials"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secretadmin"
	"tazlab.net/castle/ci/cmd/cli"
)

func main() {
	// Before anything else: what runs below must not read the age key here.
	if err := nodump.Process(); err != nil {
		fmt.Fprintln(os.Stderr, "castle: keep other processes from reading this one:", err)
		os.Exit(1)
	}
	if environment.IsTool() {
		fmt.Fprintln(os.Stderr, "castle:", environment.Exec())
		os.Exit(1)
	}
	run.LearnEnvironment()
	var c clusterFlags
	verbs := []*cobra.Command{
		c.validate(), c.describe(), c.doctor(), c.create(), c.plan(), c.status(), c.outputs(), c.destroy(), c.nuclearWipe(), c.removeNode(), c.timeline(), c.forget(),
		c.stateList(), c.stateShow(), c.stateUnlock(), c.stateRestore(), c.stateExport(), c.stateImport(), c.stateMigrate(),
		c.secretsInit(), c.secretsAgeKey(), c.secretsRotateAge(),
		c.secretsLook("secrets-check", "Name every secret that is missing or unfit", secretadmin.Check),
		c.secretsLook("secrets-list", "Show which secrets there are, and where, without their values", secretadmin.List),
		c.sealed("kubeconfig", "Print an administrator's kubeconfig, sealed", credentials.Kubeconfig),
		c.sealed("talosconfig", "Print an administrator's talosconfig, sealed", credentials.Talosconfig),
	}
	for _, verb := range verbs {
		c.add(verb)
	}
	root := cli.Root("castle-cluster", "Create, plan, inspect and destroy a cluster; the commands run inside castle's containers", verbs...)
	root.AddCommand(newRolloutCommand(), newReachCommand(), newWaitCommand(), newChartsCommand(), newPinChartsCommand(), newPinProvidersCommand(), newProvidersCommand(), newNewClusterCommand(), newPostrenderCommand())
	cli.Main(root, tracing.Start)
}
