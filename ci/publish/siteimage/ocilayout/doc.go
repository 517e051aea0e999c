// Package ocilayout reads images from OCI layouts, as folders or tar files, and writes layouts; it never talks to a
// registry and never changes or recompresses a blob.
package ocilayout
