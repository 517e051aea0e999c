package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change is what Bump did, or found done already.
type Change struct {
	Location // as before the change
	Old, New Reference
	Changed  bool // whether the bytes differ
	// OldLine and NewLine are the line that changed, for a one-line diff; without line ends. Where a digest of its own
	// line changed or was added as well, they hold these lines too, joined by "\n". Both are empty without a change.
	OldLine, NewLine string
}

// Bump points the addressed reference at another tag and, where digest is not empty, pins that digest. It returns src
// itself where nothing has to change.
//
// Without a digest, repository:tag@digest loses its digest, for it would keep the old image; a digest under a key of its
// own (kustomize, Helm values) is an error instead, because lines are never removed. With a digest, a kustomize entry
// that has no digest key gets one below newTag; Helm values do not, since not every chart knows the key. An entry that
// has only a digest key keeps that form.
//
// A new tag that YAML would read as a number, a date or a truth value is quoted where the old one was not.
//
// Errors: those of Current, *StaleDigestError, *UnsupportedError, *InternalError.
func Bump(src []byte, sel Selector, tag, digest string) ([]byte, Change, error) {
	if err := checkTag(tag); err != nil {
		return nil, Change{}, err
	}
	if digest != "" {
		if err := checkDigest(digest); err != nil {
			return nil, Change{}, err
		}
	}
	if err := sel.checkAddress(); err != nil {
		return nil, Change{}, err
	}
	m, err := parse(src)
	if err != nil {
		return nil, Change{}, err
	}
	t, err := m.findOne(sel)
	if err != nil {
		return nil, Change{}, err
	}

	b := bump{manifest: m, target: t, tag: tag, digest: digest}
	if err := b.plan(); err != nil {
		return nil, Change{}, err
	}
	out := b.apply()
	change := Change{Location: t.Location, Old: t.Reference, New: b.newReference(), Changed: !bytes.Equal(src, out)}
	if !change.Changed {
		return src, change, nil
	}
	if err := b.verify(out); err != nil {
		return nil, Change{}, err
	}
	change.OldLine, change.NewLine = b.changedLines()
	return out, change, nil
}

// bump collects the edits of one change. Each edit is also made in the parsed tree, which so becomes the tree that the
// edited text has to parse to.
type bump struct {
	*manifest
	target      *target
	tag, digest string
	edits       []edit
}

// edit replaces src[start:end] with text.
type edit struct {
	start, end int
	text       string
}

func (b *bump) plan() error {
	if isSealed(b.documents[b.target.Document-1]) {
		return b.unsupported("document %d is encrypted by SOPS, whose checksum covers the image too; "+
			"change it with sops, or encrypt with mac_only_encrypted", b.target.Document)
	}
	if !b.target.isLiteral() {
		return b.unsupported("%s", b.target.whyNotLiteral())
	}
	if err := b.checkPins(); err != nil {
		return err
	}
	var err error
	if b.target.whole != nil {
		err = b.planWhole()
	} else {
		err = b.planSplit()
	}
	slices.SortFunc(b.edits, func(x, y edit) int { return cmp.Compare(x.start, y.start) })
	return err
}

// checkPins refuses digests that would go on winning over the new tag: all of them where no digest is pinned, else
// all but the one that is set.
func (b *bump) checkPins() error {
	for i, p := range b.target.pins {
		if stringValue(p.value) != "" && (b.digest == "" || b.target.whole != nil || i > 0) {
			return &StaleDigestError{Location: b.target.Location, Key: p.key, Line: b.text.line(b.text.nodeOffset(p.value))}
		}
	}
	return nil
}

// isSealed reports whether the SOPS MAC of a document covers its plain values, too. SOPS writes its metadata into every
// document that it encrypts (stores/yaml/store.go, EmitEncryptedFile), so a document without it is under no MAC.
func isSealed(document *yaml.Node) bool {
	return len(document.Content) > 0 && lookup(document.Content[0], "sops", "mac") != nil &&
		lookupString(document.Content[0], "sops", "mac_only_encrypted") != "true"
}

func (b *bump) newReference() Reference {
	r := Reference{Repository: b.target.Repository, Tag: b.tag, Digest: b.digest}
	if b.target.whole == nil && b.target.tag == nil {
		r.Tag = "" // only a digest is written there
	}
	return r
}

// planWhole keeps the repository's bytes and replaces what follows them.
func (b *bump) planWhole() error {
	return b.set(b.target.whole, b.target.Repository, b.newReference().suffix())
}

func (b *bump) planSplit() error {
	t := b.target
	tag, composite := b.tag, strings.Contains(stringValue(t.tag), "@")
	switch {
	case t.digestInName:
		return b.unsupported("a digest is written into the repository, and wins over a new tag; "+
			"write the repository as %s, and tag: %s below it, once", t.Repository, b.tag)
	case t.tag == nil && t.digest == nil:
		return b.unsupported("there is neither a tag nor a digest; write one into the manifest once")
	case b.digest == "" && t.tag == nil && stringValue(t.digest) == "":
		return b.unsupported("there is no tag; write one into the manifest once")
	case b.digest == "":
	case t.digest != nil:
		if err := b.set(t.digest, "", t.pins[0].spell(b.digest)); err != nil {
			return err
		}
	case composite:
		tag += "@" + b.digest
	case t.kustomize:
		if err := b.insertDigest(); err != nil {
			return err
		}
	default:
		return b.unsupported("there is no digest beside the tag; write the tag once as %s@%s, "+
			"or digest: \"\" beside it if the chart has that value, or do not pin the digest", t.Tag, b.digest)
	}
	if t.tag == nil {
		return nil
	}
	return b.set(t.tag, "", tag)
}

// set changes what follows the first bytes, keep, of a scalar.
func (b *bump) set(n *yaml.Node, keep, rest string) error {
	if err := b.checkOwned(n); err != nil {
		return err
	}
	if n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" {
		return b.unsupported("line %d does not hold a plain string", b.text.line(b.text.nodeOffset(n)))
	}
	s, ok := b.text.scalarSpan(n)
	if !ok {
		return b.unsupported("line %d is empty, escaped or spread over several lines; write it as one plain or quoted string",
			b.text.line(b.text.nodeOffset(n)))
	}
	value := keep + rest
	if n.Style&^yaml.TaggedStyle == 0 && !readsAsString(value) {
		b.edits = append(b.edits, edit{s.start, s.end, `"` + value + `"`})
		n.Style |= yaml.DoubleQuotedStyle
	} else {
		b.edits = append(b.edits, edit{s.start + len(keep), s.end, rest})
	}
	lineEnds := n.Value[len(strings.TrimRight(n.Value, "\n")):] // of a block scalar
	n.Value, n.Tag = value+lineEnds, "!!str"
	return nil
}

// checkOwned refuses a scalar that another image shares through an alias: changing it would change that image too.
func (b *bump) checkOwned(n *yaml.Node) error {
	for _, other := range b.targets {
		if other != b.target && (n == other.whole || n == other.tag || n == other.digest) {
			return b.unsupported("it shares &%s with another image (%s); give each its own tag", n.Anchor, other.Location)
		}
	}
	return nil
}

// oldBooleans are the words that YAML 1.1 readers take for a truth value or null, whatever their case.
var oldBooleans = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// readsAsString tells whether a plain scalar means a string to readers of YAML 1.1 and 1.2 alike: a short commit id
// may be all digits, or 12345e6.
func readsAsString(s string) bool {
	return (&yaml.Node{Kind: yaml.ScalarNode, Value: s}).ShortTag() == "!!str" &&
		!slices.Contains(oldBooleans, strings.ToLower(s))
}

// insertDigest adds a digest key below newTag, or behind it inside braces.
func (b *bump) insertDigest() error {
	entry := b.target.entries[0]
	i := keyIndex(entry, "newTag")
	if len(b.target.entries) > 1 || i < 0 {
		return b.unsupported("newTag is shared through an alias, so there is no one place for a digest; write digest: \"\" there once")
	}
	key, value := entry.Content[i], entry.Content[i+1]
	end, ok := b.valueEnd(value)
	if !ok {
		return b.unsupported("newTag is empty, escaped or spread over several lines; write it as one plain or quoted string")
	}

	newKey := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "digest"}
	newValue := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: b.digest}
	var text string
	switch {
	case entry.Style&yaml.FlowStyle == 0:
		end = b.text.lineEnd(end)
		text = b.text.breakNear(end) + strings.Repeat(" ", key.Column-1) + "digest: " + b.digest
	case key.Style == yaml.DoubleQuotedStyle:
		newKey.Style, newValue.Style = yaml.DoubleQuotedStyle, yaml.DoubleQuotedStyle // the file may be JSON
		text = fmt.Sprintf(`, "digest": "%s"`, b.digest)
	default:
		text = ", digest: " + b.digest
	}
	b.edits = append(b.edits, edit{end, end, text})
	entry.Content = slices.Insert(entry.Content, i+2, newKey, newValue)
	return nil
}

// valueEnd is the offset behind a value, be it a scalar or an alias. It reports false for a block scalar as well: a line
// below it may change the line ends that belong to its value.
func (b *bump) valueEnd(n *yaml.Node) (int, bool) {
	if n.Kind == yaml.AliasNode {
		start := b.text.nodeOffset(n)
		return start + 1 + len(n.Value), b.text.at(start, "*"+n.Value)
	}
	s, ok := b.text.scalarSpan(n)
	return s.end + s.quote, ok && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

func (b *bump) apply() []byte {
	return b.applyWithin(0, len(b.text.src))
}

// applyWithin returns src[start:end] with the edits that lie in it.
func (b *bump) applyWithin(start, end int) []byte {
	var out []byte
	for _, e := range b.edits {
		if e.start < start || e.end > end {
			continue
		}
		out = append(out, b.text.src[start:e.start]...)
		out = append(out, e.text...)
		start = e.end
	}
	return append(out, b.text.src[start:end]...)
}

// changedLines returns the lines with edits that change something, before and after.
func (b *bump) changedLines() (before, after string) {
	var old, changed []string
	last := -1
	for _, e := range b.edits {
		start, _ := b.text.lineRange(e.start)
		_, end := b.text.lineRange(e.end)
		if start == last || string(b.text.src[e.start:e.end]) == e.text {
			continue
		}
		last = start
		old = append(old, trimReturns(b.text.src[start:end]))
		changed = append(changed, trimReturns(b.applyWithin(start, end)))
	}
	return strings.Join(old, "\n"), strings.Join(changed, "\n")
}

func trimReturns(line []byte) string {
	return strings.TrimSuffix(strings.ReplaceAll(string(line), "\r\n", "\n"), "\r")
}

func (b *bump) unsupported(format string, args ...any) error {
	return &UnsupportedError{Location: b.target.Location, Reason: fmt.Sprintf(format, args...)}
}
