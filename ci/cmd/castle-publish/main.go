// Command castle-publish is the steps of publish-blog and its companions; they run inside the module's containers, one
// after the other. This package holds commands and flags only; what they do stands in ci/publish.
package main

import (
	"os"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/cmd/cli"
)

func main() {
	redact.Add(os.Getenv(gitTokenVariable), cli.Secret(registryPasswordVariable), os.Getenv(cosignKeyVariable), cli.Secret(cosignPasswordVariable))
	cli.Main(cli.Root("castle-publish", "The steps of publish-blog; they run inside castle's containers",
		newSettingsCommand(), newSitesCommand(), newHeadersCommand(), newSigningKeyCommand(), newExportCommand(), newReachableCommand(), newNodeModulesCommand(), newBuildCommand(), newAfterBuildCommand(), newImageCommand(),
		newArchiveCommand(), newPreflightCommand(), newPublishCommand(), newRollbackCommand(), newUndoCommand(), newHistoryCommand(), newVerifyCommand(), newCheckCommand(),
		newBrowseCommand(), newPullCommand(), newCompareCommand()), tracing.Start)
}
