package builtsite

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
)

// UnknownSite stands for the address of a site that does not tell its own: absolute links to itself lead elsewhere then.
var UnknownSite = &url.URL{Scheme: "https", Host: "site.invalid", Path: "/"}

// AddressOf is the address of the site in a folder, scheme and host: those of its home page's canonical link, else of the
// first address in its site map, else of UnknownSite. Many themes write no canonical link; Hugo itself writes the map.
func AddressOf(dir string) *url.URL {
	for _, place := range []struct {
		file    string
		address func([]byte) *url.URL
	}{{"index.html", canonical}, {"sitemap.xml", located}} {
		content, err := os.ReadFile(filepath.Join(dir, place.file))
		if err != nil {
			continue
		}
		if address := place.address(content); address != nil {
			return &url.URL{Scheme: address.Scheme, Host: address.Host, Path: "/"}
		}
	}
	return UnknownSite
}

// located is the first address in a site map, or in a list of site maps; nil where there is none with a host.
func located(siteMap []byte) *url.URL {
	decoder := xml.NewDecoder(bytes.NewReader(siteMap))
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "loc" {
			var text string
			if err := decoder.DecodeElement(&text, &start); err != nil {
				return nil
			}
			address, err := url.Parse(strings.TrimSpace(text))
			if err == nil && address.Host != "" {
				return address
			}
		}
	}
}

// FileOf is the address of a file of a site; an index.html is served at its folder's. The site's address ends in a slash.
func FileOf(site *url.URL, file string) *url.URL {
	if path.Base(file) == "index.html" {
		file = strings.TrimSuffix(file, "index.html")
	}
	return site.ResolveReference(&url.URL{Path: site.Path + file})
}

// canonical is the address that a page gives itself, nil where it gives none with a host.
func canonical(page []byte) *url.URL {
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for tokens.Next() != html.ErrorToken {
		token := tokens.Token()
		if token.Data != "link" {
			continue
		}
		attributes := map[string]string{}
		for _, attribute := range token.Attr {
			attributes[attribute.Key] = attribute.Val
		}
		address, err := url.Parse(attributes["href"])
		if attributes["rel"] == "canonical" && err == nil && address.Host != "" {
			return address
		}
	}
	return nil
}
