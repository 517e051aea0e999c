// Package mirror keeps the images of images.yaml near the engine that needs them: stand-ins made here for machines that
// cannot pull, or copies of the real ones in a private registry; it never changes which images are wanted, and it never
// passes a stand-in off as the real thing (every stand-in says what it is in its labels).
//
// A mirror holds an image under its name without the registry, as BuildKit and containerd ask for it:
// docker.io/library/golang:1.26.4-bookworm is <mirror>/library/golang:1.26.4-bookworm, ghcr.io/gohugoio/hugo:v0.165.0
// is <mirror>/gohugoio/hugo:v0.165.0. EngineConfig writes the part of engine.toml that points an engine there.
//
// Making stand-ins is here too, and not in a package of its own: what makes, serves, copies and verifies images shares their
// addresses, the registry's handler and the labels that tell a stand-in from the real thing.
package mirror
