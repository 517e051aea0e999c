// Package docker runs a Docker daemon of a test's own, with all that belongs to it in a temporary folder and in
// namespaces; it is only for tests, and it never touches a Docker, a bridge, a firewall rule or a container of the
// machine.
//
// The daemon is the first process of a process namespace: whatever it started ends with it, however it ends. Its
// network namespace reaches the world through slirp4netns, a process without any trace in the machine's own network,
// which also shows the machine's loopback addresses to containers (HostAddress).
//
// A test binary that starts daemons calls Main first: the daemon's namespaces are set up, and on some machines its
// containers started, by that binary under another name.
package docker
