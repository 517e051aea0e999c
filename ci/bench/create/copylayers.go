//go:build linux

package main

import "tazlab.net/castle/ci/base/copytree"

// copyLayers copies the folder of layers, without what Terragrunt may have left in it.
func copyLayers(from, to string) error {
	return copytree.Over(from, to, ".terragrunt-cache", ".terraform")
}
