package git

import (
	"errors"
	"regexp"
	"strings"
)

// The kinds of failure a caller can act on. Use errors.Is; the *Error holds what git and the server said.
var (
	// ErrNonFastForward means that the remote branch has moved since it was fetched. It is the only kind that fetching
	// again and redoing the work can mend.
	ErrNonFastForward = errors.New("the remote branch has moved meanwhile")
	// ErrProtectedBranch means that a rule of the server forbids this push to this branch.
	ErrProtectedBranch = errors.New("the branch is protected")
	// ErrRefConflict means that a branch is there whose name is the beginning of the pushed one's, or that begins with it.
	ErrRefConflict = errors.New("the branch's name collides with another branch's")
	// ErrRejected means that the server refused the push for a reason of its own, such as a hook.
	ErrRejected = errors.New("the server refused the push")
	// ErrUnauthorized means that credentials are missing, wrong or expired.
	ErrUnauthorized = errors.New("the credentials were not accepted")
	// ErrForbidden means that the credentials are known but do not allow this.
	ErrForbidden = errors.New("the credentials do not allow this")
	// ErrRepositoryNotFound means that there is no such repository, or that these credentials may not see it.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrRefNotFound means that the remote has no such branch, tag or commit.
	ErrRefNotFound = errors.New("no such branch, tag or commit on the remote")
	// ErrUnreachable means that the host did not answer: name resolution, connection or TLS.
	ErrUnreachable = errors.New("the host is not reachable")
	// ErrHostKey means that the ssh host key is unknown or changed.
	ErrHostKey = errors.New("the ssh host key was not accepted")
	// ErrServer means that the server failed (HTTP 5xx or 429).
	ErrServer = errors.New("the server failed")
	// ErrNotARepository means that the local folder is in no Git working tree.
	ErrNotARepository = errors.New("not a Git repository")
)

// Error is a git command that failed, without secrets.
type Error struct {
	Args     []string // after "git"
	ExitCode int      // -1 where git was not started or was ended by a deadline
	Stderr   string   // what git and the remote said
	Kind     error    // one of the Err… of this package, nil where unknown
	Cause    error    // why there is no exit code: context.DeadlineExceeded, context.Canceled, …
}

// Error is one line: the command, the kind, and the line of git's messages that says most.
func (e *Error) Error() string {
	parts := []string{"git " + e.command()}
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			parts = append(parts, err.Error())
		}
	}
	if line := e.Detail(); line != "" {
		parts = append(parts, line)
	}
	return strings.Join(parts, ": ")
}

// Unwrap makes errors.Is find the kind and the cause.
func (e *Error) Unwrap() []error {
	var wrapped []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			wrapped = append(wrapped, err)
		}
	}
	return wrapped
}

// command is the subcommand: the first argument that is no option.
func (e *Error) command() string {
	for i := 0; i < len(e.Args); i++ {
		switch arg := e.Args[i]; {
		case arg == "-C" || arg == "-c":
			i++
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return strings.Join(e.Args, " ")
}

// Detail is the most telling line of the messages: the remote's own error, else git's, else the last one; empty where git
// said nothing.
func (e *Error) Detail() string {
	var last, fatal string
	for line := range strings.Lines(e.Stderr) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "remote:":
			continue
		case strings.HasPrefix(line, "remote: error:") || strings.HasPrefix(line, "remote: ERROR"):
			return line
		case fatal == "" && (strings.HasPrefix(line, "fatal:") || strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "! [")):
			fatal = line
		}
		last = line
	}
	if fatal != "" {
		return fatal
	}
	return last
}

// rule is one line of the table by which messages become kinds.
type rule struct {
	kind    error
	message *regexp.Regexp
}

func when(kind error, message string) rule { return rule{kind, regexp.MustCompile(`(?im)` + message)} }

// rules are tried in order. The messages are those of git itself, OpenSSH, and of GitHub, GitLab, Gitea, Forgejo, Bitbucket
// and Azure DevOps.
var rules = []rule{
	// What a server says about a rule of its own comes with "[remote rejected] (pre-receive hook declined)", so first.
	when(ErrProtectedBranch, `^remote:.*\bGH006\b|^remote:.*\bGH013\b|protected branch hook declined|`+
		`^remote:.*protected branch|^remote:.*TF402455|^remote:.*Permission denied to update branch`),
	// The server also says of such a branch that it failed to update the ref, which passes where two pushes meet, so first.
	when(ErrRefConflict, `'refs/.*' exists; cannot (create|lock)|directory file conflict|refname conflict`),
	// "fetch first" and "non-fast-forward" are said before anything is sent; the others when two pushes meet in the
	// server: the loser finds the ref locked, or no longer where it was announced. "shallow update" is said where the
	// branch was rewritten in between, so that it no longer reaches the commit at which a shallow clone ends.
	when(ErrNonFastForward, `^ ! \[(remote )?rejected\].*\((fetch first|non-fast-forward|stale info|`+
		`cannot lock ref.*|failed to update ref|failed to lock|incorrect old value provided|`+
		`reference already exists|shallow update not allowed|remote ref updated since checkout)`),
	when(ErrRejected, `^ ! \[(remote )?rejected\]`),
	when(ErrHostKey, `Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED`),
	when(ErrRepositoryNotFound, `^fatal: repository '.*' not found|^remote: Repository not found|^ERROR: Repository not found|`+
		`does not appear to be a git repository|^fatal: repository '.*' does not exist|project you were looking for could not be found`),
	when(ErrForbidden, `returned error: 403|^remote: Permission to .* denied|^remote: Write access to repository not granted|`+
		`^ERROR: Permission to .* denied|^ERROR: The key you are authenticating with has been marked as read only`),
	when(ErrUnauthorized, `Authentication failed for|could not read (Username|Password)|returned error: 401|`+
		`Permission denied \(|^remote: Invalid username or (password|token)|^remote: HTTP Basic: Access denied`),
	when(ErrServer, `returned error: (5\d\d|429)`),
	when(ErrUnreachable, `Could not resolve (host|proxy)|Failed to connect to|Couldn't connect to server|Connection refused|`+
		`Connection timed out|Network is unreachable|No route to host|Connection reset by peer|Operation too slow|`+
		`SSL certificate problem|server certificate verification failed|SSL_ERROR|gnutls_handshake|Empty reply from server`),
	when(ErrRefNotFound, `couldn't find remote ref|Remote branch .* not found|upload-pack: not our ref|Server does not allow request for unadvertised object`),
	when(ErrNotARepository, `not a git repository`),
}

// classify is the kind of failure that messages in the C locale tell of, nil where they tell of none.
func classify(stderr string) error {
	for _, r := range rules {
		if r.message.MatchString(stderr) {
			return r.kind
		}
	}
	return nil
}
