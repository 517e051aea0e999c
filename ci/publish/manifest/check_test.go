package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// checkOnlyTheAddressedChanged compares a manifest before and after Bump without any of Bump's own code: as bytes, by
// explaining the difference with at most two replacements of the reference's own text, and as YAML, leaf by leaf.
func checkOnlyTheAddressedChanged(t testing.TB, src, out []byte, c Change) {
	t.Helper()
	if c.Changed == bytes.Equal(src, out) {
		t.Fatalf("Changed is %v, bytes equal is %v", c.Changed, bytes.Equal(src, out))
	}
	if !c.Changed {
		return
	}
	if !explained(src, out, replacements(c), 2) {
		t.Fatalf("more than the reference changed, from %+v to %+v:\n%q\n%q", c.Old, c.New, src, out)
	}
	if c.OldLine == c.NewLine {
		t.Fatalf("the change shows no difference: %q", c.OldLine)
	}

	before, after := leaves(t, src), leaves(t, out)
	if len(after) == len(before)+2 { // a digest key and its value
		i := firstDifference(before, after)
		if !strings.HasSuffix(after[i], " digest") || !strings.HasSuffix(after[i+1], " "+c.New.Digest) {
			// The first difference may be the tag, which stands before the digest.
			i = firstDifference(before[i+1:], after[i+1:]) + i + 1
		}
		if !strings.HasSuffix(after[i], " digest") || !strings.HasSuffix(after[i+1], " "+c.New.Digest) {
			t.Fatalf("something else than a digest was added: %q", after[i:i+2])
		}
		after = append(after[:i:i], after[i+2:]...)
	}
	if len(after) != len(before) {
		t.Fatalf("%d leaves became %d", len(before), len(after))
	}
	changed := 0
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		changed++
		if !strings.Contains(after[i], c.New.Tag) && !strings.Contains(after[i], digits(c.New.Digest)) {
			t.Fatalf("another leaf changed: %q became %q", before[i], after[i])
		}
	}
	if changed > 2 {
		t.Fatalf("%d leaves changed", changed)
	}
}

type replacement struct{ old, new string }

// replacements lists every way in which the text of this one reference may change.
func replacements(c Change) []replacement {
	quoted := func(s string) string { return `"` + s + `"` }
	oldTag := strings.TrimPrefix(Reference{Tag: c.Old.Tag, Digest: c.Old.Digest}.String(), ":")
	newTag := strings.TrimPrefix(Reference{Tag: c.New.Tag, Digest: c.New.Digest}.String(), ":")
	all := []replacement{
		{Reference{Tag: c.Old.Tag, Digest: c.Old.Digest}.String(), Reference{Tag: c.New.Tag, Digest: c.New.Digest}.String()},
		{c.Old.String(), quoted(c.New.String())},
		{oldTag, newTag},
	}
	for _, old := range []string{c.Old.Tag, c.Old.Tag + "@", oldTag, "~", "null", "Null", "NULL"} {
		all = append(all, replacement{old, c.New.Tag}, replacement{old, quoted(c.New.Tag)})
	}
	if c.New.Digest != "" {
		for _, old := range []string{c.Old.Digest, "~", "null", "Null", "NULL"} {
			all = append(all, replacement{old, c.New.Digest})
		}
		for _, old := range []string{digits(c.Old.Digest), "~", "null", "Null", "NULL"} { // of a key such as sha
			all = append(all, replacement{old, digits(c.New.Digest)}, replacement{old, quoted(digits(c.New.Digest))})
		}
		all = append(all, replacement{"", ", digest: " + c.New.Digest}, replacement{"", `, "digest": "` + c.New.Digest + `"`})
		for _, lineBreak := range []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029"} {
			for indent := range 40 {
				all = append(all, replacement{"", lineBreak + strings.Repeat(" ", indent) + "digest: " + c.New.Digest})
			}
		}
	}
	return all
}

// digits is a digest without the name of its algorithm.
func digits(digest string) string {
	_, digits, _ := strings.Cut(digest, ":")
	return digits
}

// explained tells whether at most n replacements turn src into out.
func explained(src, out []byte, all []replacement, n int) bool {
	if bytes.Equal(src, out) {
		return true
	}
	if n == 0 {
		return false
	}
	common := 0
	for common < len(src) && common < len(out) && src[common] == out[common] {
		common++
	}
	for i := common; i >= max(0, common-200); i-- { // old and new text may begin alike
		for _, r := range all {
			if bytes.HasPrefix(src[i:], []byte(r.old)) && bytes.HasPrefix(out[i:], []byte(r.new)) &&
				explained(src[i+len(r.old):], out[i+len(r.new):], all, n-1) {
				return true
			}
		}
	}
	return false
}

// leaves lists keys and scalars of a YAML stream in order, with document, depth and tag.
func leaves(t testing.TB, src []byte) []string {
	t.Helper()
	var all []string
	var list func(n *yaml.Node, place string)
	list = func(n *yaml.Node, place string) {
		if n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode {
			all = append(all, fmt.Sprintf("%s kind %d &%s %s", place, n.Kind, n.Anchor, n.Value))
		}
		for _, child := range n.Content {
			list(child, place+".")
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	for document := 1; ; document++ {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("does not parse: %v\n%q", err, src)
		}
		list(&n, fmt.Sprint(document))
	}
}

func firstDifference(a, b []string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// FuzzBump starts from the golden cases. Whatever the manifest, a success changes only the addressed reference, a second
// Bump finds nothing to do, and Bump's last check never has to step in.
func FuzzBump(f *testing.F) {
	for _, path := range goldenFiles(f) {
		c := readGolden(f, path)
		for _, pin := range []bool{false, true} {
			f.Add(c.in, c.sel.Image, c.sel.Container, c.sel.Resource, c.tag, pin)
		}
	}
	const digest = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	f.Fuzz(func(t *testing.T, src []byte, image, container, resource, tag string, pin bool) {
		sel := Selector{Image: image, Container: container, Resource: resource}
		pinned := ""
		if pin {
			pinned = digest
		}
		out, change, err := Bump(src, sel, tag, pinned)
		var internal *InternalError
		if errors.As(err, &internal) {
			t.Fatalf("%v\n%q", err, src)
		}
		if err != nil {
			return
		}
		checkOnlyTheAddressedChanged(t, src, out, change)
		again, change, err := Bump(out, sel, tag, pinned)
		if err != nil || change.Changed || !bytes.Equal(again, out) {
			t.Fatalf("a second bump: %v, changed %v\n%q\n%q", err, change.Changed, out, again)
		}
	})
}
