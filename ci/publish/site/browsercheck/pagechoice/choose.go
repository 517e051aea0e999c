// Package pagechoice takes the fewest pages of a built site that show everything that matters to headers and layout: scripts,
// inline scripts and styles, handlers, other hosts, skeletons. A large site is a few templates, so these are few.
package pagechoice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/site/builtsite"
)

// maxLayouts is how many skeletons are told apart, and maxDetails how many scripts, inline scripts and so on of one
// sort. A site of 900 pages then gives 6 to 15 pages to open.
const (
	maxLayouts = 12
	maxDetails = 12
)

// Page is one of the site that stands for others.
type Page struct {
	// Path is where it is on the site: /posts/hello/.
	Path string `json:"path"`
	// Shows is why it was chosen: what no page before it in the list has.
	Shows []string `json:"shows"`
	// Alike counts the site's pages with its layout; one that only sends the visitor on has none.
	Alike int `json:"alike"`

	Status int `json:"-"` // what the server is to answer
}

// String is the page with what it is opened for.
func (p Page) String() string {
	text := fmt.Sprintf("%s (layout of %s)", p.Path, rendering.Count(p.Alike, "page"))
	if p.Alike == 0 {
		text = p.Path + " (sends the visitor on)"
	}
	if len(p.Shows) > 0 {
		text += ": " + strings.Join(p.Shows[:min(len(p.Shows), 6)], ", ")
	}
	if more := len(p.Shows) - 6; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Choice is what is opened of a site.
type Choice struct {
	Pages   []Page
	Of      int // pages of the site
	LeftOut int // pages that would have to be opened to see everything
}

// notFoundPage is the file with the answer for what is not there, and NotFoundPath an address that is nowhere.
const (
	notFoundPage = "404.html"
	NotFoundPath = "/castle-looks-for-a-page-that-is-not-there/"
)

// Choose reads all pages of a built site and takes the fewest that show everything, as far as the greedy way finds them:
// the page with the most that is new goes first, of equals the one with the shortest path. The home page and that for what
// is missing are always in it. The base is where the site is built for.
func Choose(ctx context.Context, dir string, base *url.URL, limit int) (Choice, error) {
	site, err := builtsite.Open(dir, "")
	if err != nil {
		return Choice{}, err
	}
	files := pagesOf(site)
	traits := make([]*traits, len(files))
	err = site.Read(ctx, files, func(i int, content []byte) (err error) {
		traits[i], err = readTraits(base, files[i], content)
		return err
	})
	if err != nil {
		return Choice{}, err
	}
	return cover(traits, limit), nil
}

// pagesOf sorts shortest first, so that the first of equal pages is the one with the shortest path.
func pagesOf(site *builtsite.Site) []string {
	pages := slices.DeleteFunc(slices.Clone(site.Files), func(name string) bool {
		return !strings.HasSuffix(name, ".html") && !strings.HasSuffix(name, ".htm")
	})
	slices.SortFunc(pages, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return pages
}

func cover(pages []*traits, limit int) Choice {
	chosen := Choice{Of: len(pages)}
	level := layoutLevel(pages)
	alike := map[string]int{}
	for _, page := range pages {
		if !page.sendsOn {
			alike[page.layouts[level]]++
		}
	}
	common := commonDetails(pages)
	features := make([]map[string]bool, len(pages))
	missing := map[string]bool{}
	for i, page := range pages {
		features[i] = map[string]bool{}
		if page.sendsOn && page.file != "index.html" {
			continue // an alias shows nothing of its own
		}
		features[i]["layout "+page.layouts[level]] = true
		for sort, details := range page.details {
			for detail := range details {
				if !common[sort][detail] {
					detail = "of a page's own"
				}
				features[i][strings.TrimSpace(sort+" "+detail)] = true
			}
		}
		maps.Copy(missing, features[i])
	}
	fresh := func(i int) (shows []string) {
		for feature := range features[i] {
			if missing[feature] {
				shows = append(shows, feature)
			}
		}
		return shows
	}
	take := func(i int) {
		page := Page{Path: pages[i].path(), Shows: []string{}, Alike: alike[pages[i].layouts[level]], Status: 200}
		if pages[i].file == notFoundPage {
			page.Path, page.Status = NotFoundPath, 404
		}
		for _, feature := range fresh(i) {
			delete(missing, feature)
			if !strings.HasPrefix(feature, "layout ") {
				page.Shows = append(page.Shows, feature)
			}
		}
		slices.Sort(page.Shows)
		features[i] = nil
		if len(chosen.Pages) == limit {
			chosen.LeftOut++
			return
		}
		chosen.Pages = append(chosen.Pages, page)
	}
	for i, page := range pages {
		if page.file == "index.html" {
			take(i)
		}
	}
	for i, page := range pages {
		if page.file == notFoundPage {
			take(i)
		}
	}
	for len(missing) > 0 {
		best, most := 0, 0
		for i := range pages {
			if count := len(fresh(i)); count > most {
				best, most = i, count
			}
		}
		take(best)
	}
	return chosen
}

// layoutLevel is the finest at which the site has no more than maxLayouts.
func layoutLevel(pages []*traits) int {
	for level := range layoutLevels {
		different := map[string]bool{}
		for _, page := range pages {
			if !page.sendsOn {
				different[page.layouts[level]] = true
			}
		}
		if len(different) <= maxLayouts {
			return level
		}
	}
	return layoutLevels - 1
}

// commonDetails are those of each sort that are on the most pages. A script that each article brings along is one sort of
// thing, not hundreds.
func commonDetails(pages []*traits) map[string]map[string]bool {
	counts := map[string]map[string]int{}
	for _, page := range pages {
		for sort, details := range page.details {
			for detail := range details {
				if counts[sort] == nil {
					counts[sort] = map[string]int{}
				}
				counts[sort][detail]++
			}
		}
	}
	common := map[string]map[string]bool{}
	for sort, details := range counts {
		names := slices.SortedFunc(maps.Keys(details), func(a, b string) int {
			return cmp.Or(cmp.Compare(details[b], details[a]), cmp.Compare(a, b))
		})
		common[sort] = map[string]bool{}
		for _, name := range names[:min(len(names), maxDetails)] {
			common[sort][name] = true
		}
	}
	return common
}
