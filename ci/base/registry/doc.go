// Package registry is an OCI registry in one folder on disk, for the mirror, the demo and the tests; it never proxies
// another registry, never holds a blob in memory and never collects garbage.
//
// The folder:
//
//	blobs/sha256/<hex>                        every blob once, whichever repositories use it
//	repositories/<name>/_manifests/<hex>      a manifest, byte for byte as it was pushed
//	repositories/<name>/_tags/<tag>           the digest that the tag points at
//	uploads/<id>                              an upload that is not finished
//
// Whatever has its final name is complete and has the digest that it is named by: it was written beside it, verified and
// renamed. So the folder survives a killed process, and pushes need no lock between them. A power cut may still lose what
// the kernel had not written.
package registry
