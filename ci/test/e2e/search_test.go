package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// newSearchSite is a site in a folder of a repository whose lock file, with PostCSS and Pagefind, is at its top. Its home
// page asks Pagefind as it is opened, and fails where that finds nothing.
func newSearchSite(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/search")); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(dir, "castle.yaml"), settings)
	world.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	world.CommitAll(t, dir, "Write the site")
	return dir
}

func TestASearchThatIsMadeAfterHugoIsPublishedAndFinds(t *testing.T) {
	needs.Most(t)
	needs.UnlessShort(t, "npm packages")
	w, source := world.New(t), newSearchSite(t, "sites: {blog: {path: website, afterBuild: [pagefind --site public]}}\n")
	mustCall(t, nil, "check-blog", "--source="+source, "--browser", "--offline")
	published := publishJSON(t, w, source)
	image := pulled(t, w, published)
	if text := fileIn(t, image, "srv/www/pagefind/pagefind-entry.json"); !strings.Contains(text, `"page_count":3`) {
		t.Errorf("the image's search is %s", text)
	}
	if style := fileIn(t, image, "srv/www/main.css"); !strings.Contains(style, "navy") {
		t.Errorf("PostCSS wrote %q", style)
	}
	if len(published.Warnings) > 0 {
		t.Errorf("warned of %q", published.Warnings)
	}

	filetest.Write(t, filepath.Join(source, "castle.yaml"), "sites: {blog: {path: website}}\n")
	world.CommitAll(t, source, "Leave the search out")
	without := publishJSON(t, w, source, "--dry-run")
	if said := strings.Join(without.Warnings, "\n"); !strings.Contains(said, "write afterBuild: [pagefind --site public]") {
		t.Errorf("without the setting, the report warns of %q", said)
	}
}
