package gitops

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
)

// DefaultBranch is where a Repository without a branch is read and pushed.
const DefaultBranch = "main"

// Repository is a remote that holds manifests.
type Repository struct {
	// URL is https, http, ssh (also as user@host:path), file, or a local path. One that carries a password is refused.
	URL string
	// Branch is what Flux follows; empty means DefaultBranch.
	Branch string
	// Credentials for the remote. Their URL need not be set: it is the one above.
	Credentials git.Credentials
	// TempDir is where the temporary clone goes; empty means the system's.
	TempDir string
}

// normalize checks the repository and fills in what was left empty.
func (r Repository) normalize() (Repository, error) {
	if r.URL == "" {
		return r, fmt.Errorf("%w: the GitOps repository has no URL", ErrRequest)
	}
	if strings.HasPrefix(r.URL, "-") {
		return r, fmt.Errorf("%w: %q is no URL of a repository", ErrRequest, r.URL)
	}
	if git.HasPassword(r.URL) {
		return r, fmt.Errorf("%w: the URL of the GitOps repository (%s) carries credentials, which would end up in logs; "+
			"give them as the Git token", ErrRequest, redact.URL(r.URL))
	}
	if _, err := url.Parse(r.URL); err != nil && strings.Contains(r.URL, "://") {
		return r, fmt.Errorf("%w: %q is no valid URL of a repository", ErrRequest, redact.URL(r.URL))
	}
	if !strings.Contains(r.URL, ":") { // a local path; git runs in another folder
		absolute, err := filepath.Abs(r.URL)
		if err != nil {
			return r, err
		}
		r.URL = absolute
	}
	if r.Branch == "" {
		r.Branch = DefaultBranch
	}
	if err := git.CheckBranch(r.Branch); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.Credentials.URL = r.URL
	return r, nil
}

// checkPath reports a path that no file in a repository can have.
func checkPath(name string) error {
	if name == "" || name == "." || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "../") || name == ".." ||
		strings.ContainsAny(name, "\n\x00") {
		return fmt.Errorf("%w: %q is no path of a file inside the repository; give it from the top of the repository, "+
			"as in apps/base/blog/blog.yaml", ErrRequest, name)
	}
	return nil
}
