// Package images reads images.yaml, the one list of the images that pipelines pull; it never pulls, resolves or
// rewrites one.
package images
