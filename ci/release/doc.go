// Package release makes castle's own releases out of programs that were compiled, and verifies them. A release is a folder of files and
// an image in a registry:
//
//	castle_OS_ARCH               the program for a user's machine
//	castle_OS_ARCH.spdx.json     the Go modules that are in it, by its own build information
//	image.json                   the image's name, tag and digest
//	provenance.intoto.json       from what, by whom and how all of it was built: SLSA v1, signed (DSSE)
//	checksums.txt                the SHA-256 of each of these
//	checksums.txt.sig            the signature over that
//
// The image has a signature, an SBOM and the provenance beside it, as cosign keeps them. What is made from one commit can be made again:
// everything that is there already is taken as it is.
package release
