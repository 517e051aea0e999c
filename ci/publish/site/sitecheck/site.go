package sitecheck

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/webref"
)

// site is the index of a built folder: what exists, and where it is served.
type site struct {
	dir     string
	names   []string // all files, sorted, with slashes
	files   map[string]bool
	folders map[string]bool
	anyCase map[string]string // lower-cased name of a file or folder to its real name
	base    *url.URL          // ends with a slash; webref.UnknownSite when the site does not tell its address
}

func openSite(dir, baseURL string) (*site, error) {
	s := &site{dir: dir, files: map[string]bool{}, folders: map[string]bool{}, anyCase: map[string]string{}}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		info, err := os.Stat(name) // follows links, as a web server does
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a dangling link: whoever refers to it hears of it
		case err != nil:
			return err
		case entry.IsDir():
			if relative == "." {
				relative = ""
			}
			s.folders[relative] = true
		case info.Mode().IsRegular():
			s.files[relative] = true
			s.names = append(s.names, relative)
		}
		s.anyCase[strings.ToLower(relative)] = relative
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read site: %w", err)
	}
	if !s.folders[""] {
		return nil, fmt.Errorf("read site: %s is not a folder", dir)
	}
	if len(s.names) == 0 {
		return nil, fmt.Errorf("read site: %s is empty: build the site first", dir)
	}
	slices.Sort(s.names)

	if baseURL == "" {
		s.base = s.ownAddress()
		return s, nil
	}
	s.base, err = url.Parse(baseURL)
	if err != nil || s.base.Host == "" || (s.base.Scheme != "http" && s.base.Scheme != "https") {
		return nil, fmt.Errorf("base URL %q: want a full address such as https://example.org/", baseURL)
	}
	if !strings.HasSuffix(s.base.Path, "/") {
		s.base = s.base.JoinPath("/")
	}
	return s, nil
}

// ownAddress takes scheme and host from the home page's canonical link.
func (s *site) ownAddress() *url.URL {
	home, err := os.ReadFile(filepath.Join(s.dir, "index.html"))
	if err != nil {
		return webref.UnknownSite
	}
	return webref.SiteOf(home)
}

// destination is where a reference leads. Exactly one of file, host and rule is set, or none for a reference that leads to no
// document at all (mailto:, data:).
type destination struct {
	file       string // file of this site
	fragment   string // percent-decoded; only with file
	host       string // another host
	rule       string // why it leads nowhere
	message    string // the rest of the sentence that begins with the reference
	redirected bool   // with file: it works, after a redirect
	cause      string // of a finding about it, the same for every way to write the reference
}

// resolver resolves references for one goroutine; what depends on no page is remembered, as navigation repeats it on each.
type resolver struct {
	site       *site
	remembered map[string]destination
}

func newResolver(site *site) *resolver {
	return &resolver{site: site, remembered: map[string]destination{}}
}

func (r *resolver) resolve(page *url.URL, reference []byte) destination {
	reference = bytes.TrimSpace(reference)
	independent := bytes.HasPrefix(reference, []byte("/")) || bytes.HasPrefix(reference, []byte("http"))
	if !independent || page.Host != r.site.base.Host {
		return r.site.resolve(page, string(reference))
	}
	if known, ok := r.remembered[string(reference)]; ok {
		return known
	}
	resolved := r.site.resolve(r.site.base, string(reference))
	r.remembered[string(reference)] = resolved
	return resolved
}

func (s *site) resolve(page *url.URL, reference string) destination {
	parsed, err := url.Parse(reference)
	if err != nil {
		return destination{rule: ruleBrokenLink, cause: reference, message: "is not a URL: correct it"}
	}
	switch strings.ToLower(parsed.Scheme) {
	case "", "http", "https":
	default:
		return destination{}
	}
	target := page.ResolveReference(parsed)
	if !strings.EqualFold(target.Host, s.base.Host) {
		return destination{host: target.Host}
	}
	name, inside := strings.CutPrefix(target.Path, s.base.Path)
	if !inside && target.Path+"/" != s.base.Path && target.Path != "" {
		return destination{rule: ruleBrokenLink, cause: target.Path,
			message: fmt.Sprintf("leads outside the site, which is served at %s: put that path in front", s.base.Path)}
	}
	if !inside {
		name = ""
	}
	found := s.find(name)
	found.cause = target.Path
	if found.file != "" {
		found.fragment, _, _ = strings.Cut(target.Fragment, ":~:") // a text directive is the browser's, not the page's
	}
	return found
}

// find looks a path up as a static web server does: a folder is its index.html, and a folder named without its slash is
// redirected to.
func (s *site) find(name string) destination {
	folder := strings.TrimSuffix(name, "/")
	index := path.Join(folder, "index.html")
	switch {
	case s.files[name]:
		return destination{file: name}
	case s.folders[folder] && s.files[index]:
		if name == "" || strings.HasSuffix(name, "/") {
			return destination{file: index}
		}
		return destination{file: index, redirected: true}
	case s.folders[folder]:
		return destination{rule: ruleNoIndex, message: "leads to a folder without index.html: link to a page in it, or give it one"}
	}
	if real, exists := s.anyCase[strings.ToLower(folder)]; exists && real != folder {
		return destination{rule: ruleLinkCase,
			message: fmt.Sprintf("differs from %s only in upper and lower case, which a web server tells apart: write it alike", real)}
	}
	return destination{rule: ruleBrokenLink, message: "leads to nothing in this site: correct the link or add the file"}
}
