package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/test/tell"
)

const (
	oldDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	newDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var blog = Selector{Image: "tazzo/tazlab.net"}

func pod(container string) []byte {
	return []byte("kind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n    - " + container + "\n")
}

func TestARealManifestChangesInOneLine(t *testing.T) {
	src, err := os.ReadFile("testdata/hugo-blog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, change, err := Bump(src, blog, "blog-1a2b3c4", newDigest)
	if err != nil {
		t.Fatal(err)
	}
	want := Change{
		Location: Location{Document: 2, Kind: "Deployment", Namespace: "hugo-blog", Name: "hugo-blog", Container: "hugo-blog",
			Path: "spec.template.spec.containers[hugo-blog].image", Line: 51,
			Reference: Reference{Repository: "tazzo/tazlab.net", Tag: "blog-0000000"}},
		Old:     Reference{Repository: "tazzo/tazlab.net", Tag: "blog-0000000"},
		New:     Reference{Repository: "tazzo/tazlab.net", Tag: "blog-1a2b3c4", Digest: newDigest},
		Changed: true,
		OldLine: "          image: tazzo/tazlab.net:blog-0000000 # the commit the blog was built from",
		NewLine: "          image: tazzo/tazlab.net:blog-1a2b3c4@" + newDigest + " # the commit the blog was built from",
	}
	if change != want {
		t.Errorf("got  %+v\nwant %+v", change, want)
	}
	if got := bytes.Replace(src, []byte(want.OldLine), []byte(want.NewLine), 1); !bytes.Equal(got, out) {
		t.Errorf("another line changed:\n%s", out)
	}
}

func TestTagAndDigestOnTwoLinesAreBothShown(t *testing.T) {
	src := "kind: Kustomization\r\nimages:\r\n- name: tazzo/tazlab.net\r\n  newTag: x\r\n"
	_, change, err := Bump([]byte(src), blog, "v2", newDigest)
	if err != nil {
		t.Fatal(err)
	}
	if want := "  newTag: v2\n  digest: " + newDigest; change.OldLine != "  newTag: x" || change.NewLine != want {
		t.Errorf("got %q and %q", change.OldLine, change.NewLine)
	}
}

func TestWithoutAChangeTheSameBytesComeBack(t *testing.T) {
	src := pod("{name: web, image: tazzo/tazlab.net:x}")
	out, change, err := Bump(src, blog, "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if &out[0] != &src[0] || change.Changed || change.OldLine != "" || change.NewLine != "" {
		t.Errorf("changed: %+v", change)
	}
}

// Every successful golden case must give the same result whatever surrounds it.
func TestLineEndsAndWhatStandsBeforeDoNotMatter(t *testing.T) {
	surroundings := map[string]func([]byte) []byte{
		"CRLF": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"no line end at the end": func(b []byte) []byte {
			return bytes.TrimRight(b, "\n")
		},
		"another document and comments with every kind of line break before": func(b []byte) []byte {
			return append([]byte("\ufeff# caffè 世界\u2028# \u0085# \u2029# \r\n"+
				"note: 'tazzo/tazlab.net:x \u2028 😀'\n---\n"), b...)
		},
		"another document behind": func(b []byte) []byte {
			return append(bytes.Clone(b), "\n---\n# tazzo/tazlab.net:x\nkind: ConfigMap\n"...)
		},
	}
	for _, path := range goldenFiles(t) {
		c := readGolden(t, path)
		if c.quoted || c.section("out.yaml") == "" {
			continue
		}
		for name, surround := range surroundings {
			t.Run(path+" with "+name, func(t *testing.T) {
				out, change, err := Bump(surround(c.in), c.sel, c.tag, c.digest)
				if err != nil {
					t.Fatal(err)
				}
				checkOnlyTheAddressedChanged(t, surround(c.in), out, change)
				if want := surround([]byte(c.section("out.yaml"))); !bytes.Equal(out, want) {
					t.Errorf("got:\n%q\nwant:\n%q", out, want)
				}
			})
		}
	}
}

func TestFindListsEveryMatchInTheOrderOfTheFile(t *testing.T) {
	src := []byte(`
kind: Deployment
metadata: {name: web}
spec:
  containers:
    - {name: web, image: "tazzo/tazlab.net:1"}
  initContainers:
    - {name: first, image: docker.io/tazzo/tazlab.net@` + oldDigest + `}
---
images: [{name: tazzo/tazlab.net, newTag: 3}, {name: nginx, newTag: 4}]
`)
	found, err := Find(src, blog)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range found {
		got = append(got, l.String())
	}
	want := []string{
		"document 1, Deployment/web, spec.containers[web].image, line 6: tazzo/tazlab.net:1",
		"document 1, Deployment/web, spec.initContainers[first].image, line 8: docker.io/tazzo/tazlab.net@" + oldDigest,
		"document 2, images[tazzo/tazlab.net].newTag, line 10: tazzo/tazlab.net:3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all, _ := Find(src, Selector{}); len(all) != 4 {
		t.Errorf("an empty selector finds %d of 4", len(all))
	}
}

func TestCurrentNeedsExactlyOneMatch(t *testing.T) {
	src := []byte("containers: [{name: a, image: tazzo/tazlab.net:1}, {name: b, image: tazzo/tazlab.net:2}]\n")
	location, err := Current(src, Selector{Image: "tazzo/tazlab.net", Container: "b"})
	if err != nil || location.Tag != "2" {
		t.Errorf("got %+v, %v", location, err)
	}
	var ambiguous *AmbiguousError
	if _, err := Current(src, blog); !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 2 {
		t.Errorf("got %v, want both candidates", err)
	}
	var missing *NotFoundError
	if _, err := Current(src, Selector{Image: "tazzo/blog"}); !errors.As(err, &missing) || len(missing.Seen) != 2 {
		t.Errorf("got %v, want all that was seen", err)
	}
	var argument *ArgumentError
	for _, sel := range []Selector{{}, {Image: "a:1"}, {Image: "a@" + oldDigest}, {Image: "a", Resource: "Pod"}} {
		if _, err := Current(src, sel); !errors.As(err, &argument) {
			t.Errorf("%+v: got %v, want an argument error", sel, err)
		}
	}
}

func TestACandidateIsAlwaysOneLine(t *testing.T) {
	_, err := Current([]byte(`containers: [{name: "a\nb", image: "x\ny"}]`), blog)
	if got := strings.Count(err.Error(), "\n"); got != 2 {
		t.Errorf("%d line ends, want 2:\n%v", got, err)
	}
}

func TestErrorsOfBumpHaveTheirTypes(t *testing.T) {
	kustomization := "kind: Kustomization\nimages: [{name: tazzo/tazlab.net, newTag: x, digest: " + oldDigest + "}]\n"
	for name, test := range map[string]struct {
		src  string
		want any
	}{
		"stale digest":     {kustomization, new(*StaleDigestError)},
		"variable":         {string(pod("image: tazzo/tazlab.net:${TAG}")), new(*UnsupportedError)},
		"empty tag":        {"image: {repository: tazzo/tazlab.net, tag: }", new(*UnsupportedError)},
		"number by tag":    {"image: {repository: tazzo/tazlab.net, tag: !!int 1}", new(*UnsupportedError)},
		"mapping as tag":   {"image: {repository: tazzo/tazlab.net, tag: {{ .Values.tag }}}", new(*UnsupportedError)},
		"unclosed bracket": {"a: [", new(*SyntaxError)},
		"unknown anchor":   {"a: *b", new(*SyntaxError)},
		"not UTF-8":        {"a: \xff", new(*SyntaxError)},
	} {
		if _, _, err := Bump([]byte(test.src), blog, "y", ""); !errors.As(err, test.want) {
			t.Errorf("%s: got %v, want %T", name, err, test.want)
		}
	}
}

func TestATagThatIsNoStringToYAMLIsQuoted(t *testing.T) {
	for tag, quoted := range map[string]bool{
		"1234567": true, "1e10": true, "12345e6": true, "0123456": true, "0x1f": true, "0o17": true, "0b11": true,
		"1_000": true, "1.10": true, "2024-01-02": true, "true": true, "No": true, "on": true, "y": true, "null": true,
		"blog-1234567": false, "1.2.3": false, "abc1234": false, "e10": false, "1a2b3c4": false, "_1": false, "v1": false,
	} {
		out, _, err := Bump([]byte("image: {repository: tazzo/tazlab.net, tag: x}"), blog, tag, "")
		if err != nil {
			t.Errorf("%s: %v", tag, err)
			continue
		}
		want := "image: {repository: tazzo/tazlab.net, tag: " + tag + "}"
		if quoted {
			want = "image: {repository: tazzo/tazlab.net, tag: \"" + tag + "\"}"
		}
		if string(out) != want {
			t.Errorf("got %s, want %s", out, want)
		}
		var values struct {
			Image struct{ Tag any }
		}
		if err := yaml.Unmarshal(out, &values); err != nil || values.Image.Tag != tag {
			t.Errorf("%s reads as %#v (%v)", out, values.Image.Tag, err)
		}
	}
}

func TestReferencesAreSplitAsTheyAreWritten(t *testing.T) {
	for s, want := range map[string]Reference{
		"nginx":                            {Repository: "nginx"},
		"nginx:1.29":                       {Repository: "nginx", Tag: "1.29"},
		"localhost:5000/x/y":               {Repository: "localhost:5000/x/y"},
		"localhost:5000/x/y:z":             {Repository: "localhost:5000/x/y", Tag: "z"},
		"x/y@" + oldDigest:                 {Repository: "x/y", Digest: oldDigest},
		"localhost:5000/y:z@" + oldDigest:  {Repository: "localhost:5000/y", Tag: "z", Digest: oldDigest},
		"tazzo/tazlab.net:blog-1@sha512:0": {Repository: "tazzo/tazlab.net", Tag: "blog-1", Digest: "sha512:0"},
	} {
		if got := ParseReference(s); got != want || got.String() != s {
			t.Errorf("%s: got %+v, as a string %s", s, got, got)
		}
	}
}

func TestSpellingsOfOneDockerHubRepositoryAreEqual(t *testing.T) {
	for _, spelling := range []string{"nginx", "library/nginx", "docker.io/nginx", "docker.io/library/nginx", "index.docker.io/nginx"} {
		if got := canonical(spelling); got != "nginx" {
			t.Errorf("%s is %s", spelling, got)
		}
	}
	for _, other := range []string{"ghcr.io/library/nginx", "library/nginx/sub", "docker.io:443/nginx"} {
		if got := canonical(other); got != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}

func TestAliasesThatMultiplyOrTurnInCirclesEnd(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 {image: tazzo/tazlab.net:x}\n")
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%[1]d {<<: [*a%[2]d, *a%[2]d], containers: [*a%[2]d, *a%[2]d]}\n", i, i-1)
	}
	for _, src := range []string{laughs.String(), "a: &a {containers: [*a], <<: *a, image: tazzo/tazlab.net:x}"} {
		if _, change, err := Bump([]byte(src), blog, "y", ""); err != nil || !change.Changed {
			t.Errorf("got %+v, %v", change, err)
		}
	}
}

func TestAnEditThatChangesMoreFailsTheLastCheck(t *testing.T) {
	src := pod("{name: web, image: tazzo/tazlab.net:x}")
	for name, more := range map[string]edit{
		"another value":    {len("kind: "), len("kind: Pod"), "Job"},
		"another document": {0, 0, "a: b\n---\n"},
		"another key":      {0, 0, "a: b\n"},
		"broken syntax":    {0, 0, "]"},
		"other quotes":     {len("kind: "), len("kind: Pod"), `"Pod"`},
	} {
		m, err := parse(src)
		if err != nil {
			t.Fatal(err)
		}
		b := bump{manifest: m, target: m.targets[0], tag: "y"}
		if err := b.plan(); err != nil {
			t.Fatal(err)
		}
		if err := b.verify(b.apply()); err != nil {
			t.Fatalf("the edit alone: %v", err)
		}
		tell.Fault(t, "an edit that changes %s as well", name)
		b.edits = slices.Insert(b.edits, 0, more)
		var internal *InternalError
		if err := b.verify(b.apply()); !errors.As(err, &internal) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheMarkerOfFluxsImageAutomationIsReported(t *testing.T) {
	for _, c := range []struct{ name, manifest, policy string }{
		{"beside the image", "kind: Pod\nspec:\n  containers:\n    - image: a/b:v1 # {\"$imagepolicy\": \"flux-system:blog\"}\n", "flux-system:blog"},
		{"above the image", "kind: Pod\nspec:\n  containers:\n    - name: a\n      # {\"$imagepolicy\": \"flux-system:blog\"}\n      image: a/b:v1\n", "flux-system:blog"},
		{"beside the tag", "images:\n  - name: a/b\n    newTag: v1 # {\"$imagepolicy\": \"flux-system:blog:tag\"}\n", "flux-system:blog"},
		{"beside the digest", "image:\n  repository: a/b\n  tag: v1\n  digest: \"\" # {\"$imagepolicy\": \"flux-system:blog:digest\"}\n", "flux-system:blog"},
		{"beside the name alone", "images:\n  - name: x\n    newName: a/b # {\"$imagepolicy\": \"flux-system:blog:name\"}\n    newTag: v1\n", ""},
		{"beside another image", "kind: Pod\nspec:\n  containers:\n    - image: c/d:v1 # {\"$imagepolicy\": \"flux-system:blog\"}\n    - image: a/b:v1\n", ""},
		{"no marker", "kind: Pod\nspec:\n  containers:\n    - image: a/b:v1 # imagepolicy\n", ""},
	} {
		_, change, err := Bump([]byte(c.manifest), Selector{Image: "a/b"}, "v2", "")
		if err != nil || change.Policy != c.policy || !change.Changed {
			t.Errorf("%s: policy %q, want %q; changed %v, %v", c.name, change.Policy, c.policy, change.Changed, err)
		}
	}
}
