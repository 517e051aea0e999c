// Package images reads images.yaml, the one list of the images that pipelines pull, and writes the file beside it that
// says which of them a mirror holds under another digest; it never pulls, resolves or rewrites an image.
package images
