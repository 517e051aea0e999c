// Command castle is for the machine that the platform is run from: it makes a Dagger engine and images ready, and shows a
// demonstration. What runs inside the module's containers is in castle-publish and castle-cluster.
package main

import "tazlab.net/castle/ci/cmd/cli"

func main() {
	cli.Main(cli.Root("castle", "Ready a machine to build, publish and run a self-hosted platform",
		newSetupCommand(), newDemoCommand(), newEngineCommand(), newMirrorCommand(), newPackagesCommand(), newToolCommand()))
}
