package builtsite

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/webref"
)

// UnknownSite stands for the address of a site that does not tell its own: absolute links to itself lead elsewhere then.
var UnknownSite = &url.URL{Scheme: "https", Host: "site.invalid", Path: "/"}

// maxLocations bounds how many addresses of a site map are looked at.
const maxLocations = 1000

// Address is where the site in a folder is served, with a slash at its end: baseURL, or where that is empty AddressOf.
func Address(dir, baseURL string) (*url.URL, error) {
	if baseURL == "" {
		return AddressOf(dir), nil
	}
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("base URL %q: want a full address such as https://example.org/", baseURL)
	}
	return at(base, base.Path), nil
}

// AddressOf is the address of the site in a folder, its path included, by what the site says itself: its home page's
// canonical link, else its site map, else its feed, else UnknownSite. Many themes write no canonical link; Hugo itself
// writes the others. Where the home page only redirects, as to the main language's, its address is another page's.
func AddressOf(dir string) *url.URL {
	located := addresses(dir, "sitemap.xml", "loc")
	if page, err := os.ReadFile(filepath.Join(dir, "index.html")); err == nil {
		if home, redirects := canonical(page); home != nil {
			located = slices.DeleteFunc(located, func(u *url.URL) bool { return u.Host != home.Host })
			switch {
			case len(located) > 0:
				return at(home, commonFolder(dir, located))
			case redirects:
				return at(home, commonFolder(dir, []*url.URL{home}))
			default:
				return at(home, strings.TrimSuffix(home.Path, "index.html"))
			}
		}
	}
	if len(located) > 0 {
		located = slices.DeleteFunc(located, func(u *url.URL) bool { return u.Host != located[0].Host })
		return at(located[0], commonFolder(dir, located))
	}
	if feed := addresses(dir, "index.xml", "link"); len(feed) > 0 {
		return at(feed[0], feed[0].Path)
	}
	return UnknownSite
}

// at is a path at the host of an address.
func at(address *url.URL, folder string) *url.URL {
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: strings.TrimSuffix(folder, "/")}).JoinPath("/")
}

// commonFolder is the path below which most of the addresses are files of the folder, the shortest of several: a site at
// /blog/ may have a section blog.
func commonFolder(dir string, addresses []*url.URL) string {
	folder, most := "/", 0
	whole := addresses[0].Path
	for i, char := range whole {
		if char != '/' {
			continue
		}
		found := 0
		for _, address := range addresses {
			if name, below := strings.CutPrefix(address.Path, whole[:i+1]); below && isServed(dir, name) {
				found++
			}
		}
		if found > most {
			folder, most = whole[:i+1], found
		}
	}
	return folder
}

// isServed says whether the site has what an address in it names.
func isServed(dir, name string) bool {
	if !filepath.IsLocal(cmp.Or(name, ".")) {
		return false
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		info, err = os.Stat(filepath.Join(file, "index.html"))
	}
	return err == nil && info.Mode().IsRegular()
}

// addresses are the first ones with a host that an XML file of the site has in its elements of a name; none of a file
// that is broken.
func addresses(dir, file, element string) (found []*url.URL) {
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	decoder := xml.NewDecoder(bytes.NewReader(content))
	for len(found) < maxLocations {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return nil
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != element {
			continue
		}
		var text string
		if err := decoder.DecodeElement(&text, &start); err != nil {
			return nil
		}
		if address, err := url.Parse(strings.TrimSpace(text)); err == nil && address.Host != "" {
			found = append(found, address)
		}
	}
	return found
}

// FileOf is the address of a file of a site; an index.html is served at its folder's. The site's address ends in a slash.
func FileOf(site *url.URL, file string) *url.URL {
	if path.Base(file) == "index.html" {
		file = strings.TrimSuffix(file, "index.html")
	}
	return site.ResolveReference(&url.URL{Path: site.Path + file})
}

// canonical is the address that a page gives itself, nil where it gives none with a host, and whether the page only sends
// the visitor on.
func canonical(page []byte) (address *url.URL, redirects bool) {
	for token := range webref.Tokens(page, func() bool { return false }) {
		if token.Name != "link" && token.Name != "meta" {
			continue
		}
		attributes := token.AttributeMap()
		if strings.EqualFold(attributes["http-equiv"], "refresh") {
			redirects = true
		}
		if token.Name == "link" && attributes["rel"] == "canonical" && address == nil {
			if parsed, err := url.Parse(attributes["href"]); err == nil && parsed.Host != "" {
				address = parsed
			}
		}
	}
	return address, redirects
}
