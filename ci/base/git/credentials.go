package git

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"tazlab.net/castle/ci/base/plainhttp"
	"tazlab.net/castle/ci/base/redact"
)

// DefaultUsername goes with a token where no user name is given; GitHub, GitLab, Gitea and Forgejo all accept it.
const DefaultUsername = "x-access-token"

// Names of the variables by which the credential helper gets what it answers with.
const (
	usernameVariable = "CASTLE_GIT_USERNAME"
	tokenVariable    = "CASTLE_GIT_TOKEN"
)

// helper is the credential helper: a shell function that answers "get" from its environment and ignores "store" and
// "erase". It holds no value, so that neither the command line nor the configuration does; the values are in the
// environment of git alone, and work the same in every program that imports this package, its tests included.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + usernameVariable + `" "$` + tokenVariable + `"; }; f`

// Credentials are what a remote may ask for: a token for https, an agent for ssh.
type Credentials struct {
	// URL is the remote the token is for. Only its scheme, host and port count: git gives the token to no other host, be
	// it by redirect or by submodule.
	URL string
	// Username goes with the token; empty means DefaultUsername.
	Username string
	// Token is a password or an access token. Surrounding white space, as files of secrets have it, is dropped.
	Token string
	// PlainHTTP names the hosts, as host:port, that may get the token over plain HTTP; this machine itself may always.
	PlainHTTP []string
	// SSHAuthSock is the path of an SSH agent's socket, for ssh remotes.
	SSHAuthSock string
	// KnownHosts is the path of a known_hosts file that must hold the ssh remote's key. Empty means OpenSSH's own files. A
	// key seen for the first time is never accepted: in a container that is thrown away, every time is the first.
	KnownHosts string
}

func (c Credentials) token() string { return strings.TrimSpace(c.Token) }

func (c Credentials) username() string {
	if name := strings.TrimSpace(c.Username); name != "" {
		return name
	}
	return DefaultUsername
}

// validate reports what could not be handed to git safely.
func (c Credentials) validate() error {
	if c.token() == "" {
		return nil
	}
	if strings.ContainsAny(c.token()+c.username(), "\r\n\x00") {
		return errors.New("the Git token or user name holds a line break; give it as one line")
	}
	if !isWeb(c.URL) {
		return nil
	}
	if _, err := c.scope(); err != nil {
		return err
	}
	// Git takes the token to no other server when it is redirected: the helper is for this scheme and host.
	if remote, err := url.Parse(c.URL); err != nil || !plainhttp.Allowed(remote, c.PlainHTTP) {
		return fmt.Errorf("the Git token for %s would go over the network in clear; write the address with https://, "+
			"or name the host as one that gets it in clear all the same (--gitops-service tcp://HOST:PORT, "+
			"castle-publish --git-plain-http HOST:PORT)", redact.URL(c.URL))
	}
	return nil
}

// scope is the part of the URL that decides who may see the token, as "https://host:port".
func (c Credentials) scope() (string, error) {
	parsed, err := url.Parse(c.URL)
	if err != nil || parsed.Host == "" {
		return "", fmt.Errorf("the Git token is for %q, which is no URL of a host", redact.URL(c.URL))
	}
	return parsed.Scheme + "://" + parsed.Host, nil
}

// config has a helper for the token's own host and none for any other; a token for a remote that is neither http nor https
// is of no use to git and stays here.
func (c Credentials) config() []Setting {
	settings := []Setting{{"credential.helper", ""}}
	if c.token() == "" || !isWeb(c.URL) {
		return settings
	}
	scope, err := c.scope()
	if err != nil {
		return settings
	}
	return append(settings, Setting{"credential." + scope + ".helper", helper})
}

// environment has what the helper and ssh read.
func (c Credentials) environment() []string {
	var env []string
	if c.token() != "" && isWeb(c.URL) {
		env = append(env, usernameVariable+"="+c.username(), tokenVariable+"="+c.token())
	}
	if c.SSHAuthSock != "" {
		env = append(env, "SSH_AUTH_SOCK="+c.SSHAuthSock)
	}
	return append(env, "GIT_SSH_COMMAND="+c.sshCommand())
}

// sshCommand never asks and never accepts a changed host key. Git hands the value to a shell, hence the quoting.
func (c Credentials) sshCommand() string {
	// A shared connection that stays in the background would hold git's standard error open.
	words := []string{"ssh", "-oBatchMode=yes", "-oConnectTimeout=15", "-oControlPath=none", "-oStrictHostKeyChecking=yes"}
	if c.KnownHosts != "" {
		words = append(words, "-oUserKnownHostsFile="+shellQuote(sshQuote(c.KnownHosts)))
	}
	return strings.Join(words, " ")
}

// shellQuote makes s one literal word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// sshQuote makes s one literal argument of an OpenSSH option that takes a list of files with tokens.
func sshQuote(s string) string { return `"` + strings.ReplaceAll(s, "%", "%%") + `"` }

func isWeb(remote string) bool {
	return strings.HasPrefix(remote, "https://") || strings.HasPrefix(remote, "http://")
}

// redact removes the token, alone and with the user's name, and what stands before the @ of a URL.
func (c Credentials) redact(text string) string {
	if token := c.token(); token != "" {
		text = redact.New(token, c.username()+":"+token).Redact(text)
	}
	return redact.URL(text)
}

func (c Credentials) redactAll(args []string) []string {
	clean := make([]string, len(args))
	for i, arg := range args {
		clean[i] = c.redact(arg)
	}
	return clean
}

// HasPassword tells whether a URL carries a password or token, which then would be in arguments and logs. The user of
// ssh://git@host is none.
func HasPassword(remote string) bool {
	parsed, err := url.Parse(remote)
	switch {
	case err != nil:
		return isWeb(remote) && strings.Contains(remote, "@")
	case isWeb(remote):
		return parsed.User != nil
	}
	_, has := parsed.User.Password()
	return has
}
