package sitecheck

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
	"tazlab.net/castle/ci/publish/site/webref"
)

// required are the elements a feed or sitemap is useless without, as paths from the root. Sources: RSS 2.0, RFC 4287,
// sitemaps.org.
var required = map[string][]string{
	"rss":          {"rss/channel", "rss/channel/title", "rss/channel/link", "rss/channel/description"},
	"feed":         {"feed/title", "feed/id", "feed/updated"},
	"urlset":       {"urlset/url/loc"},
	"sitemapindex": {"sitemapindex/sitemap/loc"},
}

// linkElements hold a URL as their text.
var linkElements = words("link loc guid comments url")

// readXML checks feeds, sitemaps and drawings: that they can be parsed, are complete, and refer to what exists.
func readXML(resolver *resolver, document *document, content []byte) {
	references := newReferences(resolver, document)
	decoder := xml.NewDecoder(bytes.NewReader(content))
	var path []string
	var text strings.Builder
	follows := false // whether the current element's text is a reference
	seen := set{}
	root := ""
	for {
		token, err := decoder.Token()
		line, _ := decoder.InputPos()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			reason := err.Error()
			if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
				reason = syntax.Msg
			}
			document.add(line, rules.XML, reason, "not well-formed: %s; mend the template", reason)
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			if root == "" {
				root = name
			}
			path = append(path, name)
			seen[strings.Join(path, "/")] = true
			text.Reset()
			follows = linkElements[name] && !isIdentifier(token)
			readXMLAttributes(references, root, token, line)
		case xml.CharData:
			text.Write(token)
		case xml.EndElement:
			name := path[len(path)-1]
			path = path[:len(path)-1]
			if reference := strings.TrimSpace(text.String()); follows && reference != "" {
				target := references.follow(source{element: name, line: line}, []byte(reference), webref.Link)
				if name == "loc" && target.host != "" {
					document.add(line, rules.BrokenLink, "<loc> at "+target.host, "<loc>%s</loc> is not at %s: build the site with its own base URL",
						reference, resolver.site.Base)
				}
			}
			if name == "style" && root == "svg" {
				references.css([]byte(text.String()), line-strings.Count(text.String(), "\n"))
			}
			text.Reset()
			follows = false
		}
	}
	if root == "" {
		document.add(1, rules.XML, "empty file", "the file is empty: give it content or do not publish it")
		return
	}
	for _, path := range required[root] {
		if !seen[path] {
			document.add(1, rules.XMLMissingFields, path, "%s is missing: add it to the template", path)
		}
	}
}

// isIdentifier tells a guid that is only a name from one that is a link.
func isIdentifier(element xml.StartElement) bool {
	for _, attribute := range element.Attr {
		if attribute.Name.Local == "isPermaLink" && attribute.Value == "false" {
			return true
		}
	}
	return false
}

func readXMLAttributes(references *references, root string, element xml.StartElement, line int) {
	for _, attribute := range element.Attr {
		name := attribute.Name.Local
		from := source{element.Name.Local, name, line}
		switch {
		case root == "svg" && name == "href" && !strings.HasPrefix(attribute.Value, "#"):
			use := webref.Link
			if element.Name.Local == "use" || element.Name.Local == "image" {
				use = webref.Image
			}
			references.follow(from, []byte(attribute.Value), use)
		case root == "svg" && name == "style":
			references.css([]byte(attribute.Value), line)
		case name == "href" && element.Name.Local == "link", name == "url" && element.Name.Local == "enclosure":
			references.follow(from, []byte(attribute.Value), webref.Link)
		}
	}
}
