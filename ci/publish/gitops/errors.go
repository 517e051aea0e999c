package gitops

import (
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
)

// Kinds of failure that this package adds to those of package git.
var (
	// ErrConflict means that the reference changed meanwhile in a way that a person has to look at.
	ErrConflict = errors.New("conflict")
	// ErrPathNotFound means that the branch has no such file.
	ErrPathNotFound = errors.New("no such file")
	// ErrSigning means that the commit could not be signed.
	ErrSigning = errors.New("the commit could not be signed")
	// ErrNotPublished means that the history holds no image of the commit asked for.
	ErrNotPublished = errors.New("not published")
	// ErrRequest means that the request itself cannot be carried out, whatever the repository holds.
	ErrRequest = errors.New("invalid request")
)

// Error is a failure with what to do about it. Its text holds no secret and is one line, save where package manifest lists
// the candidates of a selector. errors.Is finds its kind, errors.As the *git.Error or the error of package manifest below.
type Error struct {
	Step       string // "clone", "read", "commit", "push", "history"
	Repository string // its URL, without user information
	Branch     string
	Path       string // of the manifest
	Kind       error  // one of this package's or package git's Err…; nil where unknown
	Detail     string // what is special about this case; may be empty
	Fix        string // what to do; empty where there is nothing to say
	Err        error  // the failure below; may be nil
}

func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "GitOps repository %s, %s of branch %s: ", e.Repository, e.Step, e.Branch)
	switch {
	case e.Kind != nil && e.Detail != "":
		fmt.Fprintf(&text, "%v: %s", e.Kind, e.Detail)
	case e.Kind != nil:
		text.WriteString(e.Kind.Error())
	case e.Detail != "":
		text.WriteString(e.Detail)
	default:
		text.WriteString(e.Err.Error())
	}
	if e.Fix != "" {
		text.WriteString("; " + e.Fix)
	}
	return text.String()
}

// Unwrap makes errors.Is and errors.As find the kind and the failure below.
func (e *Error) Unwrap() []error {
	var wrapped []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			wrapped = append(wrapped, err)
		}
	}
	return wrapped
}

// fixes say what to do about the failures of git.
var fixes = []struct {
	kind error
	fix  string
}{
	{git.ErrProtectedBranch, "open a pull request (--pull-request does it on GitHub, else push to a --push-branch), or let the owner of the credentials bypass the rule"},
	{git.ErrRefConflict, "a branch is there whose name is the beginning of this one's, or the other way round: delete it, or name another one with --push-branch"},
	{git.ErrRejected, "ask who runs the repository which rule or hook refused it"},
	{git.ErrUnauthorized, "give a token that is valid and not expired, or for ssh an agent that holds the key"},
	{git.ErrForbidden, "give the token write access to this repository (on GitHub: contents, read and write)"},
	{git.ErrRepositoryNotFound, "check the URL, and that the credentials may see the repository"},
	{git.ErrRefNotFound, "check the name of the branch"},
	{git.ErrHostKey, "write the host's key, compared with the fingerprint that its operator publishes, into knownHosts of castle.yaml, or give --known-hosts; ssh-keyscan HOST prints it"},
	{git.ErrUnreachable, "check the host name, the network and the proxy"},
	{git.ErrServer, "run it again later"},
	{git.ErrNonFastForward, "run it again when fewer publish at once"},
}

// fail makes an *Error of a failure in a step; one that is an *Error already stays as it is.
func (w *workspace) fail(step string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	failure := w.newError(step, nil)
	failure.Err = err
	var command *git.Error
	if errors.As(err, &command) {
		failure.Kind = command.Kind
		failure.Detail = command.Detail()
		if command.Kind == nil {
			failure.Detail = command.Error()
		}
	}
	for _, known := range fixes {
		if errors.Is(failure.Kind, known.kind) {
			failure.Fix = known.fix
		}
	}
	return failure
}

// newError is an *Error about this workspace's repository.
func (w *workspace) newError(step string, kind error) *Error {
	return &Error{
		Step:       step,
		Repository: redact.URL(w.repository.URL),
		Branch:     w.branch,
		Path:       w.path,
		Kind:       kind,
	}
}
