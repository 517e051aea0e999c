package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"dagger/castle/internal/dagger"
)

// manifest is one image reference in a GitOps repository, and how to get there.
type manifest struct {
	url, branch, path   string
	image               string
	container, resource string
	access              gitAccess
	service             *dagger.Service
}

// gitAccess is how to get into a Git remote.
type gitAccess struct {
	token      *dagger.Secret
	sshAgent   *dagger.Socket
	knownHosts *dagger.File
	plainHTTP  string // the host that gets the token over plain HTTP; empty for none
}

// attach gives a container the access and returns it with the flags for its
// command.
func (a gitAccess) attach(container *dagger.Container) (*dagger.Container, []string) {
	if a.token != nil {
		container = container.WithSecretVariable("CASTLE_GIT_TOKEN", a.token)
	}
	if a.sshAgent != nil {
		const socket = "/run/castle/ssh-agent.sock"
		container = container.WithUnixSocket(socket, a.sshAgent).WithEnvVariable("SSH_AUTH_SOCK", socket)
	}
	flags := given(flag{"git-plain-http", a.plainHTTP})
	if a.knownHosts == nil {
		return container, flags
	}
	const file = "/run/castle/known_hosts"
	return container.WithMountedFile(file, a.knownHosts), append(flags, "--known-hosts="+file)
}

// attach gives a container the way to the repository and returns it with the
// flags that every command on a manifest takes.
func (m manifest) attach(container *dagger.Container) (*dagger.Container, []string, error) {
	container, flags := m.access.attach(container)
	flags = append(flags,
		"--gitops-url="+m.url, "--gitops-branch="+m.branch, "--manifest="+m.path,
		"--image="+m.image, "--container="+m.container, "--resource="+m.resource,
	)
	if m.service != nil {
		host, err := hostOfURL(m.url)
		if err != nil {
			return nil, nil, err
		}
		var forward []string
		if container, forward, err = reach(container, host, "gitops-service", m.service); err != nil {
			return nil, nil, err
		}
		// A service that a user tunnels to may be one without certificates.
		flags = append(append(flags, forward...), "--git-plain-http="+host)
	}
	return container, flags, nil
}

// reach makes a service answer in a container under the address that the user
// knows it by. A name is bound as it is; a loopback address, which would mean
// the container itself, is forwarded by castle.
func reach(container *dagger.Container, address, alias string, service *dagger.Service) (*dagger.Container, []string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("%q has no port: what is reached by a service is named with one, such as localhost:5000", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return container.WithServiceBinding(host, service), nil, nil
	}
	return container.WithServiceBinding(alias, service), []string{fmt.Sprintf("--forward=%s=%s:%s", address, alias, port)}, nil
}

// hostOfURL returns the host and port of a URL, the scheme's port where it
// names none.
func hostOfURL(raw string) (string, error) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Host == "" {
		return "", fmt.Errorf("%q is no URL with a host, such as http://localhost:3000/tazlab-k8s.git", raw)
	}
	if parsed.Port() != "" {
		return parsed.Host, nil
	}
	return net.JoinHostPort(parsed.Hostname(), map[string]string{"http": "80", "https": "443"}[parsed.Scheme]), nil
}

// hostOfImage returns the registry of an image name ("localhost:5000" of
// "localhost:5000/me/blog").
func hostOfImage(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}

// flag is one of a command's flags.
type flag struct{ name, value string }

// given are the flags that have a value, as a command takes them.
func given(flags ...flag) []string {
	var args []string
	for _, flag := range flags {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	return args
}

// gitCommit is how a change of the manifest is committed.
type gitCommit struct {
	pushBranch              string
	pinDigest, dryRun       bool
	authorName, authorEmail string
	signingKey              *dagger.Secret

	pullRequest  bool
	githubAPI    string
	mergeTimeout string // empty: the merge is not waited for
}

// attach gives a container the signing key and returns it with the flags of
// every command that commits. Zero values have no flag, so that commands which
// only read take none.
func (c gitCommit) attach(container *dagger.Container) (*dagger.Container, []string, error) {
	flags := given(flag{"push-branch", c.pushBranch}, flag{"author-name", c.authorName}, flag{"author-email", c.authorEmail})
	if c.pinDigest {
		flags = append(flags, "--pin-digest")
	}
	if c.dryRun {
		flags = append(flags, "--dry-run")
	}
	if c.pullRequest {
		flags = append(flags, "--pull-request")
		flags = append(flags, given(flag{"github-api", c.githubAPI}, flag{"merge-timeout", c.mergeTimeout})...)
	}
	if c.signingKey != nil {
		const file = "/run/castle/signing-key"
		container = container.WithMountedSecret(file, c.signingKey, dagger.ContainerWithMountedSecretOpts{Mode: 0o400})
		flags = append(flags, "--signing-key="+file)
	}
	return container, flags, nil
}
