// Command castle-gitops is what the module's functions on a GitOps repository run; it works inside castle's containers. This
// package holds commands and flags only; what they do stands in ci/gitops.
package main

import (
	"os"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cmd/cli"
)

// gitTokenVariable is the environment variable that the token for a Git remote comes in by. A flag would show it in the list of
// processes and in the engine's log.
const gitTokenVariable = "CASTLE_GIT_TOKEN"

func main() {
	redact.Add(os.Getenv(gitTokenVariable))
	cli.Main(cli.Root("castle-gitops", "What is done with a GitOps repository as a whole; it runs inside castle's containers",
		newCheckCommand(), newRepoCommand(),
	))
}
