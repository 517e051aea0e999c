package builtsite

import (
	"bytes"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// UnknownSite stands for the address of a site that does not tell its own: absolute links to itself lead elsewhere then.
var UnknownSite = &url.URL{Scheme: "https", Host: "site.invalid", Path: "/"}

// AddressOf is the address of a site by its home page: scheme and host of the canonical link, or UnknownSite.
func AddressOf(home []byte) *url.URL {
	if address := canonical(home); address != nil {
		return &url.URL{Scheme: address.Scheme, Host: address.Host, Path: "/"}
	}
	return UnknownSite
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
