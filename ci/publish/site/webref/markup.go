package webref

import (
	"bytes"
	"iter"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Token is a tag, a text or another part of a page. It and what its methods return are valid until the next one is read.
type Token struct {
	Kind html.TokenType
	Name string // of a tag
	Line int    // where it begins
	Raw  []byte // as it stands in the file; of a start tag only until its attributes are asked for
	Err  error  // with html.ErrorToken, which is the last one: io.EOF at the end of the page

	tokens     *html.Tokenizer
	more       bool // attributes to read
	attributes []Attribute
}

// Attribute is a name in lower case and an unescaped value.
type Attribute struct{ Name, Value []byte }

// Tokens reads a page, or XML such as a drawing. foreign says whether the next tag is inside a drawing or a formula, where script and style
// hold text like any other element.
func Tokens(content []byte, foreign func() bool) iter.Seq[*Token] {
	return func(yield func(*Token) bool) {
		tokens := html.NewTokenizer(bytes.NewReader(content))
		t := &Token{tokens: tokens}
		next := 1
		for {
			inside := foreign()
			tokens.AllowCDATA(inside)
			t.Kind = tokens.Next()
			t.Raw, t.Line, t.Name, t.more, t.attributes = tokens.Raw(), next, "", false, t.attributes[:0]
			next += bytes.Count(t.Raw, []byte("\n"))
			switch t.Kind {
			case html.ErrorToken:
				t.Err = tokens.Err()
				yield(t)
				return
			case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
				var name []byte
				name, t.more = tokens.TagName()
				t.Name = intern(name)
				if t.Kind != html.EndTagToken && (inside || t.Name == "noscript") {
					tokens.NextIsNotRawText() // what noscript holds is there for browsers without scripts
				}
			}
			if !yield(t) {
				return
			}
		}
	}
}

func intern(name []byte) string {
	if known := atom.Lookup(name); known != 0 {
		return known.String()
	}
	return string(name)
}

// Text is the unescaped text of a text or a doctype.
func (t *Token) Text() []byte { return t.tokens.Text() }

// Attributes are those of a start tag, each name once: browsers drop the second.
func (t *Token) Attributes() []Attribute {
	for t.more {
		var a Attribute
		a.Name, a.Value, t.more = t.tokens.TagAttr()
		t.attributes = append(t.attributes, a)
	}
	return t.attributes
}

// AttributeMap are the same by their names, and stay valid.
func (t *Token) AttributeMap() map[string]string {
	all := map[string]string{}
	for _, a := range t.Attributes() {
		if _, repeated := all[string(a.Name)]; !repeated {
			all[string(a.Name)] = string(a.Value)
		}
	}
	return all
}
