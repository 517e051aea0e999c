package gitops

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/publish/manifest"
)

// Trailers by which a commit says what it published. History reads them back.
const (
	trailerAction     = "Castle-Action"
	trailerCommit     = "Source-Commit"
	trailerRepository = "Source-Repository"
	trailerDigest     = "Image-Digest"
)

// Action is what a commit did, as its trailer names it. A commit without the trailer was made by hand or by another tool.
type Action string

const (
	// Publish points the manifest at a new image.
	Publish Action = "publish"
	// Rollback points it at an earlier one.
	Rollback Action = "rollback"
)

// Identity is the author and committer of a commit.
type Identity struct {
	Name  string
	Email string
}

// DefaultIdentity is used where a request names nobody.
var DefaultIdentity = Identity{Name: "Castle", Email: "castle@localhost"}

// message is the whole commit message for a change.
func message(request UpdateRequest, change manifest.Change) string {
	subject := request.Subject
	if subject == "" {
		image := change.New
		image.Digest = "" // in the trailer; the subject stays readable
		subject = "Publish " + image.String()
		if request.Action == Rollback {
			subject = "Roll back to " + image.String()
		}
	}
	digest := request.Digest
	if request.Unrecorded {
		digest = ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\nWas %s.\n\n", subject, change.Old)
	if request.Because != "" {
		fmt.Fprintf(&text, "%s\n\n", request.Because)
	}
	fmt.Fprintf(&text, "%s: %s\n", trailerAction, request.Action)
	for _, trailer := range []struct{ key, value string }{
		{trailerCommit, request.SourceCommit},
		{trailerRepository, redact.URL(request.SourceRepository)},
		{trailerDigest, digest},
	} {
		if trailer.value != "" {
			fmt.Fprintf(&text, "%s: %s\n", trailer.key, trailer.value)
		}
	}
	return text.String()
}

// commit makes a commit on top of parent in which the manifest has another content, and returns its name.
func (w *workspace) commit(ctx context.Context, request UpdateRequest, parent string, old file, content []byte, text string) (sha string, err error) {
	// Without --path no filter and no line end conversion applies.
	blob, err := w.git.RunInput(ctx, bytes.NewReader(content), "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	if _, err := w.git.Run(ctx, "read-tree", parent); err != nil {
		return "", err
	}
	entry := strings.Join([]string{old.mode, strings.TrimSpace(blob), w.path}, ",")
	if _, err := w.git.Run(ctx, "update-index", "--cacheinfo", entry); err != nil {
		return "", err
	}
	// The other files are not here, and git would fetch them all to be sure that they exist.
	tree, err := w.git.Run(ctx, "write-tree", "--missing-ok")
	if err != nil {
		return "", err
	}

	committer := w.git
	author := request.Author.orDefault()
	committer.Env = append([]string{
		"GIT_AUTHOR_NAME=" + author.Name, "GIT_AUTHOR_EMAIL=" + author.Email,
		"GIT_COMMITTER_NAME=" + author.Name, "GIT_COMMITTER_EMAIL=" + author.Email,
	}, w.git.Env...)
	args := []string{"commit-tree", "-p", parent}
	if request.SigningKey != "" {
		key, err := filepath.Abs(request.SigningKey)
		if err != nil {
			return "", err
		}
		committer.Config = append([]git.Setting{{Key: "gpg.format", Value: "ssh"}, {Key: "user.signingKey", Value: key}}, w.git.Config...)
		args = append(args, "-S")
	}
	sha, err = committer.RunInput(ctx, strings.NewReader(text), append(args, strings.TrimSpace(tree))...)
	if err != nil {
		if request.SigningKey != "" {
			return "", w.signingFailed(request.SigningKey, err)
		}
		return "", err
	}
	return strings.TrimSpace(sha), nil
}

func (w *workspace) signingFailed(key string, err error) error {
	failure := w.newError("commit", ErrSigning)
	failure.Detail = err.Error()
	failure.Fix = fmt.Sprintf("%s must be an OpenSSH private key without passphrase that only its owner may read, "+
		"or a public key whose private half an agent holds; ssh-keygen must be installed", key)
	failure.Err = err
	return failure
}

// orDefault fills in what was left empty.
func (i Identity) orDefault() Identity {
	if i.Name == "" {
		i.Name = DefaultIdentity.Name
	}
	if i.Email == "" {
		i.Email = DefaultIdentity.Email
	}
	return i
}
