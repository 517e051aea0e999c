package sitecheck

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"

	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
)

// site is the index of a built folder: what exists, by name.
type site struct {
	*builtsite.Site
	files   map[string]bool
	folders map[string]bool
	anyCase map[string]string // lower-cased name of a file or folder to its real name
}

func openSite(dir, baseURL string) (*site, error) {
	built, err := builtsite.Open(dir, baseURL)
	if err != nil {
		return nil, err
	}
	if len(built.Files) == 0 {
		return nil, fmt.Errorf("read site: %s is empty: build the site first", dir)
	}
	s := &site{Site: built, files: map[string]bool{}, folders: map[string]bool{}, anyCase: map[string]string{}}
	for _, name := range built.Files {
		s.files[name] = true
		s.anyCase[strings.ToLower(name)] = name
	}
	for _, name := range built.Folders {
		s.folders[name] = true
		s.anyCase[strings.ToLower(name)] = name
	}
	return s, nil
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
	if !independent || page.Host != r.site.Base.Host {
		return r.site.resolve(page, string(reference))
	}
	if known, ok := r.remembered[string(reference)]; ok {
		return known
	}
	resolved := r.site.resolve(r.site.Base, string(reference))
	r.remembered[string(reference)] = resolved
	return resolved
}

func (s *site) resolve(page *url.URL, reference string) destination {
	parsed, err := url.Parse(reference)
	if err != nil {
		return destination{rule: rules.BrokenLink, cause: reference, message: "is not a URL: correct it"}
	}
	switch strings.ToLower(parsed.Scheme) {
	case "", "http", "https":
	default:
		return destination{}
	}
	target := page.ResolveReference(parsed)
	if !strings.EqualFold(target.Host, s.Base.Host) {
		return destination{host: target.Host}
	}
	name, inside := strings.CutPrefix(target.Path, s.Base.Path)
	if !inside && target.Path+"/" != s.Base.Path && target.Path != "" {
		if meant := strings.TrimPrefix(target.Path, "/"); parsed.Host != "" && (meant == "" || s.find(meant).file == "") {
			return destination{} // another site of the same host
		}
		return destination{rule: rules.BrokenLink, cause: target.Path,
			message: fmt.Sprintf("leads outside the site, which is served at %s: put that path in front", s.Base.Path)}
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
		return destination{rule: rules.NoIndex, message: "leads to a folder without index.html: link to a page in it, or give it one"}
	}
	if real, exists := s.anyCase[strings.ToLower(folder)]; exists && real != folder {
		return destination{rule: rules.LinkCase,
			message: fmt.Sprintf("differs from %s only in upper and lower case, which a web server tells apart: write it alike", real)}
	}
	if path.Base(path.Dir(name)) == "pagefind" {
		return destination{rule: rules.BrokenLink, message: "is not in this site; Pagefind makes it after Hugo: " +
			"write afterBuild: [pagefind --site public] for the site in castle.yaml"}
	}
	return destination{rule: rules.BrokenLink, message: "leads to nothing in this site: correct the link or add the file"}
}
