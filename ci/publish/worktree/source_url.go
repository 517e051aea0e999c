package worktree

import (
	"net/url"
	"strings"
)

// sourceURL is the remote's address in the one form that is the same for everybody who cloned it, whether by https, by
// ssh or as user@host:path: https://host/path. It goes into the image, whose digest must not depend on how a machine
// reaches the remote. A remote in the machine's own file system has none.
func sourceURL(remote string) string {
	host, path := "", ""
	if strings.HasPrefix(remote, "file:") {
		return ""
	}
	parsed, err := url.Parse(remote)
	switch before, after, found := strings.Cut(remote, ":"); {
	case err == nil && parsed.Host != "":
		host, path = parsed.Hostname(), parsed.Path
	case strings.Contains(remote, "://"): // it cannot be read, and may hold a password
	case found && !strings.Contains(before, "/"):
		host, path = before[strings.LastIndex(before, "@")+1:], after
	}
	path = strings.Trim(strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git"), "/")
	if host == "" || path == "" {
		return ""
	}
	return "https://" + strings.ToLower(host) + "/" + path
}
