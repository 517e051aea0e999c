package webref

import "strings"

// Kind is what a browser does with the address in an attribute.
type Kind int

// Kinds of references.
const (
	NoReference Kind = iota
	Link             // the visitor may follow it
	Script           // and all below: the browser asks for it
	Image
	ImageSet // several candidates with their sizes: see Srcset
	Media
	Frame
	Object
	Ping
	Form
)

// Attributes are the kinds of the attributes that refer to something, by element. Those of link, meta and base depend on other attributes.
// Source: the HTML standard's index of attributes, those of type URL.
var Attributes = map[string]map[string]Kind{
	"a":          {"href": Link, "ping": Ping},
	"area":       {"href": Link, "ping": Ping},
	"audio":      {"src": Media},
	"blockquote": {"cite": Link},
	"body":       {"background": Image},
	"button":     {"formaction": Form},
	"del":        {"cite": Link},
	"embed":      {"src": Object},
	"feimage":    {"href": Image, "xlink:href": Image},
	"form":       {"action": Form},
	"frame":      {"src": Frame},
	"iframe":     {"src": Frame},
	"image":      {"href": Image, "xlink:href": Image},
	"img":        {"src": Image, "srcset": ImageSet},
	"input":      {"src": Image, "formaction": Form},
	"ins":        {"cite": Link},
	"object":     {"data": Object},
	"q":          {"cite": Link},
	"script":     {"src": Script, "href": Script},
	"source":     {"src": Media, "srcset": ImageSet},
	"table":      {"background": Image},
	"td":         {"background": Image},
	"th":         {"background": Image},
	"track":      {"src": Media},
	"use":        {"href": Image, "xlink:href": Image},
	"video":      {"src": Media, "poster": Image},
}

// scriptTypes are in lower case.
var scriptTypes = map[string]bool{
	"": true, "module": true, "importmap": true, "speculationrules": true,
	"application/ecmascript": true, "application/javascript": true, "application/x-ecmascript": true, "application/x-javascript": true,
	"text/ecmascript": true, "text/javascript": true, "text/javascript1.0": true, "text/javascript1.1": true, "text/javascript1.2": true,
	"text/javascript1.3": true, "text/javascript1.4": true, "text/javascript1.5": true, "text/jscript": true, "text/livescript": true,
	"text/x-ecmascript": true, "text/x-javascript": true,
}

// IsScript tells by its type that a browser reads a script element, and asks a policy about it; others hold data. Source: the HTML standard,
// "prepare the script element", with the JavaScript MIME types of the MIME Sniffing standard.
func IsScript(kind string) bool { return scriptTypes[strings.ToLower(strings.TrimSpace(kind))] }
