package siteimage

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Where the site stands in the image. Not nginx's usual folder, since official images keep files of their own there.
const siteDir = "srv/www"

// group is the content of one layer: files below a folder.
type group struct {
	name  string
	dir   string // without leading and trailing slash
	files []file
}

// kind is what changes together, and so stands in layers of its own.
type kind int

// In the order of the layers, the steady ones first.
const (
	asset kind = iota
	page
	termList
	list
	feed
	kinds // how many there are
)

// step is one step of the number of shards: below so many bytes, so many shards.
type step struct {
	below  int64
	shards uint32
}

// Each step is several times the last one, and so far apart that a site crosses one a few times in its life; it then sends
// that kind of file anew once. All the upper ends together stay well below the 127 layers that overlay mounts allow. Lists
// are cut finer than pages, because an edit changes more than one of them.
var cuts = [kinds]struct {
	layer string
	steps []step
	most  uint32
}{
	asset:    {"assets", []step{{16 << 20, 1}, {256 << 20, 4}}, 16},
	page:     {"pages", []step{{1 << 20, 1}, {16 << 20, 4}, {64 << 20, 16}}, 32},
	termList: {"terms", []step{{1 << 20, 1}, {4 << 20, 4}}, 16},
	list:     {"lists", []step{{1 << 20, 1}, {4 << 20, 4}}, 16},
	feed:     {"feeds", []step{{1 << 20, 1}, {4 << 20, 4}}, 16},
}

// shards is the number of layers for so many bytes of a kind.
func (k kind) shards(bytes int64) uint32 {
	for _, s := range cuts[k].steps {
		if bytes < s.below {
			return s.shards
		}
	}
	return cuts[k].most
}

// groups cuts the site, which comes into a folder, into layers in the order of doc.go. Empty ones are left out.
func (s *site) groups(dir string) []group {
	var files [kinds][]file
	var bytes [kinds]int64
	for i, k := range s.classify() {
		files[k] = append(files[k], s.files[i])
		bytes[k] += s.files[i].size
	}
	var groups []group
	for k := range kinds {
		groups = append(groups, shard(cuts[k].layer, dir, files[k], k.shards(bytes[k]))...)
	}
	return groups
}

// shard spreads files by a hash of their folder, so that a page and what stands beside it stay together.
func shard(name, dir string, files []file, shards uint32) []group {
	parts := make([][]file, shards)
	for _, f := range files {
		sum := sha256.Sum256([]byte(path.Dir(f.path)))
		if path.Base(f.path) != "index.html" && path.Ext(f.path) == ".html" || path.Ext(f.path) == fragment {
			sum = sha256.Sum256([]byte(f.path)) // many pages in one folder, as of Hugo's uglyURLs
		}
		at := binary.BigEndian.Uint32(sum[:4]) % shards
		parts[at] = append(parts[at], f)
	}
	var groups []group
	for i, part := range parts {
		if len(part) == 0 {
			continue
		}
		title := name
		if shards > 1 {
			title = fmt.Sprintf("%s %d/%d", name, i+1, shards)
		}
		slices.SortFunc(part, func(a, b file) int { return strings.Compare(a.path, b.path) })
		groups = append(groups, group{title, dir, part})
	}
	return groups
}

var (
	pagerForm    = regexp.MustCompile(`(^|/)page/[0-9]+$`)                                                     // Hugo's pagination
	searchForm   = regexp.MustCompile(`\.pf_[a-z]+$|(^|/)pagefind-entry\.json$|(^|/)(sw|service-worker)\.js$`) // Pagefind's index; a list of all files, as Workbox writes it
	taxonomyForm = regexp.MustCompile(`^(?:[a-z]{2,3}(?:-[A-Za-z]+)?/)?(tags|categories|series|authors)(/|$)`) // usual names, with or without language
)

// fragment is the extension of a page's text, which Pagefind shows of what it finds.
const fragment = ".pf_fragment"

// classify tells the kinds from paths alone, as a generator writes them. A wrong guess costs bytes, never correctness.
//
// A folder is a list of other pages when pages stand below it, when it has a feed, or when it has a name that pagination
// or a taxonomy usually has. Of a list, the page and what else stands there are two kinds: a feed or a search index holds
// the articles' text and changes with every edit, a page shows titles and changes with a new article. The lists of terms
// are many, and an article is in few of them.
func (s *site) classify() []kind {
	folders := map[string]bool{".": true}
	for _, f := range s.files {
		dir := path.Dir(f.path)
		switch path.Base(f.path) {
		case "index.html":
			for dir != "." {
				dir = path.Dir(dir)
				folders[dir] = true
			}
		case "index.xml":
			folders[dir] = true
		}
	}
	isList := func(dir string) bool {
		return folders[dir] || pagerForm.MatchString(dir) || taxonomyForm.MatchString(dir)
	}
	found := make([]kind, len(s.files))
	for i, f := range s.files {
		dir := path.Dir(f.path)
		switch extension := f.extension(); {
		case extension == fragment:
			found[i] = page
		case searchForm.MatchString(f.path):
			found[i] = feed
		case extension == ".html", extension == ".htm":
			switch {
			case dir != "." && (path.Base(f.path) != "index.html" || !isList(dir)):
				found[i] = page
			case taxonomyForm.MatchString(dir):
				found[i] = termList
			default:
				found[i] = list
			}
		case extension == ".xml", extension == ".json", extension == ".txt":
			found[i] = page
			if isList(dir) {
				found[i] = feed
			}
		default:
			found[i] = asset
		}
	}
	return found
}
