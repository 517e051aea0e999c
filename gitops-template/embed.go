// Package gitopstemplate is the Flux repository that `gitops-repo` renders for a cluster: its files, with what a cluster's own
// description says left open between [[ and ]]. The renderer is ci/gitops/gitopsrepo; only it knows what may stand there.
package gitopstemplate

import "embed"

// Files are the repository's, below repository; what several of them share, below partials; and pins.yaml, which names the
// version of every chart and image.
//
//go:embed all:repository partials pins.yaml
var Files embed.FS
