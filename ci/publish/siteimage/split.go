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

// kind says how often a file changes.
type kind int

const (
	asset kind = iota
	page
	index
)

// step is one step of the number of shards: up to so many of a thing, so many shards.
type step struct {
	below  int64
	shards uint32
}

// Each step is four times the last one, and so far apart that a site crosses one a few times in its life; it then sends
// its pages anew once. The upper ends keep a site of 10,000 pages well below the 127 layers that overlay mounts allow.
var (
	pageSteps  = []step{{256, 1}, {2048, 4}, {32768, 16}} // by number of pages
	assetSteps = []step{{16 << 20, 1}, {256 << 20, 4}}    // by bytes
)

const (
	maxPageShards  = 32
	maxAssetShards = 16
)

func shardsFor(amount int64, steps []step, most uint32) uint32 {
	for _, s := range steps {
		if amount < s.below {
			return s.shards
		}
	}
	return most
}

// groups cuts the site into layers in the order of doc.go. Empty ones are left out.
func (s *site) groups() []group {
	kinds := s.classify()
	byKind := map[kind][]file{}
	var assetBytes int64
	for i, f := range s.files {
		byKind[kinds[i]] = append(byKind[kinds[i]], f)
		if kinds[i] == asset {
			assetBytes += f.size
		}
	}
	groups := shard("assets", byKind[asset], shardsFor(assetBytes, assetSteps, maxAssetShards))
	groups = append(groups, shard("pages", byKind[page], shardsFor(int64(len(byKind[page])), pageSteps, maxPageShards))...)
	return append(groups, shard("indexes", byKind[index], 1)...)
}

// shard spreads files by a hash of their folder, so that a page and what stands beside it stay together.
func shard(name string, files []file, shards uint32) []group {
	parts := make([][]file, shards)
	for _, f := range files {
		sum := sha256.Sum256([]byte(path.Dir(f.path)))
		if path.Base(f.path) != "index.html" && path.Ext(f.path) == ".html" {
			sum = sha256.Sum256([]byte(f.path)) // Hugo's uglyURLs: many pages in one folder
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
		groups = append(groups, group{title, siteDir, part})
	}
	return groups
}

var (
	pagerForm    = regexp.MustCompile(`(^|/)page/[0-9]+$`)                                                     // Hugo's pagination
	taxonomyForm = regexp.MustCompile(`^(?:[a-z]{2,3}(?:-[A-Za-z]+)?/)?(tags|categories|series|authors)(/|$)`) // usual names, with or without language
)

// classify tells the kinds from paths alone, as a generator writes them. A wrong guess costs bytes, never correctness.
// A folder is an index, that is a list of other pages, when pages stand below it, when it has a feed, or when it has a
// name that pagination or a taxonomy usually has.
func (s *site) classify() []kind {
	lists := map[string]bool{".": true}
	for _, f := range s.files {
		dir := path.Dir(f.path)
		switch path.Base(f.path) {
		case "index.html":
			for dir != "." {
				dir = path.Dir(dir)
				lists[dir] = true
			}
		case "index.xml":
			lists[dir] = true
		}
	}
	isList := func(dir string) bool {
		return lists[dir] || pagerForm.MatchString(dir) || taxonomyForm.MatchString(dir)
	}
	kinds := make([]kind, len(s.files))
	for i, f := range s.files {
		dir := path.Dir(f.path)
		switch f.extension() {
		case ".html", ".htm":
			kinds[i] = page
			if path.Base(f.path) == "index.html" && isList(dir) || dir == "." {
				kinds[i] = index
			}
		case ".xml", ".json", ".txt":
			kinds[i] = page
			if isList(dir) {
				kinds[i] = index
			}
		default:
			kinds[i] = asset
		}
	}
	return kinds
}
