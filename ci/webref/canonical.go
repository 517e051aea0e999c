package webref

import (
	"bytes"
	"net/url"

	"golang.org/x/net/html"
)

// Canonical is the address that a page gives itself, nil where it gives none with a host.
func Canonical(page []byte) *url.URL {
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
