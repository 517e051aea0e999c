// Package imagepush pushes an image or index to a registry under a new tag and confirms it; it never moves a tag that
// exists, never pushes "latest", and never writes credentials to a log or an error. A tag whose image was made from
// the same inputs and has the same content counts as the image, and so does one that Options.Known knows: nothing is
// pushed then, and Result has the registry's digest.
//
// The order of a push: look at the tag; upload the blobs that are missing, several at once; put the manifests by digest,
// an index after its images; look at the tag again; put the tag; read the tag back. So a tag appears last and only for
// an image that is whole, and whoever reads Result.Digest has it from the registry.
//
// Each of these steps is repeated on its own where that can help, so that one cut connection costs one blob.
package imagepush
