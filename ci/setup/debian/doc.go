// Package debian makes small Debian root file systems and installs Debian packages on the host; it never changes the
// host's apt configuration, and nothing of the host (its name, resolver, mirrors, extra CA certificates) gets into a root.
package debian
