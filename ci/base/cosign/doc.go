// Package cosign signs and verifies as cosign does, with a pair of keys that `cosign generate-key-pair` made: files, images and
// in-toto statements. It makes and reads bytes; it talks to no registry and to no transparency log.
//
// An image's signature is one over a small JSON text that names the image's digest ("simple signing"); a statement is an in-toto
// statement in a DSSE envelope. Sources: cosign, specs/SIGNATURE_SPEC.md and specs/ATTESTATION_SPEC.md.
package cosign
