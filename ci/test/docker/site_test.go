//go:build linux

package docker

import (
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/world"
)

// newSite is a clean working tree of a Hugo site with two pages.
func newSite(t *testing.T) string {
	t.Helper()
	folder := filetest.New(t, map[string]string{
		"hugo.yaml":         "baseURL: https://blog.example.com/\ntitle: Two pages\ndisableKinds: [taxonomy, term, RSS]\n",
		"layouts/all.html":  "<!doctype html>\n<html lang=en>\n<title>{{ .Title }}</title>\n{{ .Content }}\n",
		"layouts/404.html":  "<!doctype html>\n<html lang=en>\n<title>Not found</title>\n",
		"content/_index.md": "---\ntitle: Home\n---\nSee [the other page](/other/).\n",
		"content/other.md":  "---\ntitle: Other\n---\nSome words.\n",
	})
	world.Git(t, folder, "init", "--quiet", "--initial-branch=main")
	world.CommitAll(t, folder, "Write two pages")
	return folder
}
