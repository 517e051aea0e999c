package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/realsites"
	"tazlab.net/castle/ci/test/world"
)

// publishedSite is a site of other people after its first publish.
type publishedSite struct {
	realsites.Site
	first report.Result
}

// chosenSites are a few, or all of them where CASTLE_SITES says so, as `make test-sites` does.
func chosenSites(t *testing.T) []realsites.Site {
	t.Helper()
	switch wanted := os.Getenv("CASTLE_SITES"); wanted {
	case "":
		return realsites.Samples()
	case "all":
		return realsites.All()
	default:
		for _, site := range realsites.All() {
			if site.Name == wanted {
				return []realsites.Site{site}
			}
		}
		t.Fatalf("CASTLE_SITES=%s: want all or the name of a site", wanted)
		return nil
	}
}

// writeSite writes a site's working tree.
func writeSite(t *testing.T, site realsites.Site) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), site.Name)
	if err := site.Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pathOf is the argument that says where the site is in its working tree.
func pathOf(site realsites.Site) string { return "--path=" + cmp.Or(site.Path, ".") }

// publishSite publishes a site and looks at its pages in a browser, behind the headers that were fitted to it.
func publishSite(t *testing.T, w *world.World, site realsites.Site) *publishedSite {
	t.Helper()
	source := writeSite(t, site)
	first := publishJSON(t, w, source, pathOf(site))
	if !first.Changed || first.Image.AlreadyThere {
		t.Errorf("the site was published before: %+v", first.Image)
	}
	mustCall(t, nil, "check-blog", "--source="+source, pathOf(site), "--browser", "--offline")
	return &publishedSite{site, first}
}
