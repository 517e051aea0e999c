package images

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const good = `images:
  # renovate: datasource=docker depName=docker.io/library/golang
  - key: golang
    image: docker.io/library/golang
    tag: 1.26.4-bookworm
    digest: sha256:5f68ec6805843bd3981a951ffada82a26a0bd2631045c8f7dba483fa868f5ec5
    purpose: compiles
    platforms: [linux/amd64, linux/arm64]
    standIn: golang

  # renovate: datasource=docker depName=localhost:5000/a/b
  - key: second
    image: localhost:5000/a/b
    tag: v0.165.0
    purpose: is a second one
    platforms: [linux/amd64]
    standIn: none
`

func TestTheProjectsOwnListIsValid(t *testing.T) {
	list, err := Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"golang", "hugo", "nginx", "engine"} {
		if _, err := list.Get(key); err != nil {
			t.Error(err)
		}
	}
}

func TestAListIsReadInItsOwnOrder(t *testing.T) {
	list, err := parse("images.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Key != "golang" || list[1].Key != "second" {
		t.Fatalf("got %+v", list)
	}
	golang, err := list.Get("golang")
	if err != nil {
		t.Fatal(err)
	}
	want := Image{
		Key: "golang", Name: "docker.io/library/golang", Tag: "1.26.4-bookworm",
		Digest:  "sha256:5f68ec6805843bd3981a951ffada82a26a0bd2631045c8f7dba483fa868f5ec5",
		Purpose: "compiles", Platforms: []string{"linux/amd64", "linux/arm64"}, StandIn: StandInGolang,
	}
	if !slices.Equal(golang.Platforms, want.Platforms) {
		t.Errorf("platforms %v, want %v", golang.Platforms, want.Platforms)
	}
	golang.Platforms, want.Platforms = nil, nil
	if got, want := toText(golang), toText(want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func toText(i Image) string {
	return strings.Join([]string{i.Key, i.Name, i.Tag, i.Digest, i.Purpose, i.StandIn}, " | ")
}

func TestAGroupsImagesComeOnlyWhereTheyAreAskedFor(t *testing.T) {
	list, err := parse("images.yaml", []byte(strings.Replace(good, "    standIn: none\n", "    standIn: none\n    group: create\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		groups []string
		keys   string
	}{{nil, "golang"}, {[]string{"create"}, "golang second"}} {
		some, err := list.In(c.groups...)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, image := range some {
			keys = append(keys, image.Key)
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%v: got %s, want %s", c.groups, got, c.keys)
		}
	}
	if _, err := list.In("create", "gone"); err == nil || !strings.Contains(err.Error(), `no group "gone"; it has create`) {
		t.Errorf("got %v", err)
	}
}

func TestAnImageKnowsItsReferenceRegistryAndRepository(t *testing.T) {
	for _, c := range []struct{ name, registry, repository string }{
		{"docker.io/library/golang", "docker.io", "library/golang"},
		{"registry.dagger.io/engine", "registry.dagger.io", "engine"},
		{"localhost:5000/a/b", "localhost:5000", "a/b"},
	} {
		i := Image{Name: c.name, Tag: "1.2.3"}
		if i.Pinned() != i.Reference() {
			t.Errorf("%s: without a digest, %s is pulled", c.name, i.Pinned())
		}
		if i.Reference() != c.name+":1.2.3" || i.Registry() != c.registry || i.Repository() != c.repository {
			t.Errorf("%s: %s, %s, %s", c.name, i.Reference(), i.Registry(), i.Repository())
		}
	}
}

func TestAnUnknownKeyIsAnErrorThatNamesTheKnownOnes(t *testing.T) {
	list, err := parse("images.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	_, err = list.Get("gloang")
	if err == nil || !strings.Contains(err.Error(), "gloang") || !strings.Contains(err.Error(), "golang, second") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingFileIsAnErrorThatNamesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Each case replaces text of the good list, and expects exactly these mistakes.
func TestEachMistakeIsOneLine(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"no tag", "    tag: 1.26.4-bookworm\n", "", []string{"images.yaml:3: golang: tag is missing"}},
		{"tag latest", "1.26.4-bookworm", "latest", []string{"images.yaml:3: golang: tag latest moves"}},
		{"a tag with one number", "1.26.4-bookworm", `"1"`, []string{`images.yaml:3: golang: tag "1" is not an exact version`}},
		{"a tag with two numbers", "1.26.4-bookworm", `"1.26-bookworm"`, []string{`tag "1.26-bookworm" is not an exact version`}},
		{"a tag that is a channel", "1.26.4-bookworm", "stable", []string{`tag "stable" is not an exact version`}},
		{"no purpose", "purpose: compiles", "purpose: ''", []string{"images.yaml:3: golang: purpose is missing"}},
		{"a key twice", "key: second", "key: golang", []string{"images.yaml:12: golang: key stands on line 3 already"}},
		{"a key with capitals", "key: second", "key: Second", []string{`key "Second" must be lower-case`}},
		{"an image without a registry", "image: docker.io/library/golang", "image: golang", []string{
			`image "golang" is not a full name`, "images.yaml:2: golang: Renovate's marker watches docker.io/library/golang"}},
		{"no marker", "  # renovate: datasource=docker depName=localhost:5000/a/b\n", "", []string{
			"images.yaml:11: second: the line above must be Renovate's marker"}},
		{"no marker on the first entry", "  # renovate: datasource=docker depName=docker.io/library/golang\n", "", []string{
			"images.yaml:2: golang: the line above must be Renovate's marker"}},
		{"the marker of another image", "depName=localhost:5000/a/b", "depName=localhost:5000/a/c", []string{
			"images.yaml:11: second: Renovate's marker watches localhost:5000/a/c"}},
		{"an unknown field", "    purpose: compiles", "    porpose: x\n    purpose: compiles", []string{`images.yaml:7: golang: unknown field "porpose"`}},
		{"an unknown field at the top", "images:\n", "version: 1\nimages:\n", []string{`images.yaml:1: unknown field "version"`}},
		{"a field twice", "    purpose: compiles", "    purpose: a\n    purpose: compiles", []string{`images.yaml:8: golang: field "purpose" stands twice`}},
		{"a bad digest", "sha256:5f", "sha256:5g", []string{"golang: digest"}},
		{"a bad platform", "[linux/amd64]", "[amd64]", []string{`second: platform "amd64" is not of the form os/arch`}},
		{"no platforms", "    platforms: [linux/amd64]\n", "", []string{"second: platforms is missing"}},
		{"platforms that are no list", "[linux/amd64]", "{a: b}", []string{"second: platforms must be a list", "second: platforms is missing"}},
		{"a field that is no text", "purpose: compiles", "purpose: [a]", []string{"golang: purpose must be text", "golang: purpose is missing"}},
		{"an unknown stand-in", "standIn: none", "standIn: nothing", []string{`second: standIn "nothing" is unknown`}},
		{"a group with capitals", "standIn: none", "standIn: none\n    group: Create", []string{`second: group "Create" must be lower-case`}},
		{"no stand-in", "    standIn: none\n", "", []string{"second: standIn is missing"}},
		{"the same image twice", "localhost:5000/a/b\n    tag: v0.165.0", "localhost:5000/a/b\n    tag: v0.165.0\n    standIn: none\n    platforms: [linux/amd64]\n    purpose: p\n  # renovate: datasource=docker depName=localhost:5000/a/b\n  - key: third\n    image: localhost:5000/a/b\n    tag: v0.165.0", []string{
			"images.yaml:19: third: localhost:5000/a/b:v0.165.0 stands on line 12 already"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(good, c.old) {
				t.Fatalf("the good list has no %q", c.old)
			}
			_, err := parse("images.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("%d mistakes, want %d:\n%v", len(lines), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
				}
			}
		})
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, err := parse("images.yaml", []byte("images:\n  - key: a\n  - key: a\n    tag: latest\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"2: a: image is missing", "2: a: tag is missing", "2: a: purpose is missing", "2: a: platforms is missing",
		"2: a: standIn is missing", "3: a: tag latest", "3: a: key stands on line 2",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no line with %q in:\n%v", want, err)
		}
	}
}

func TestADocumentOfAnotherShapeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "is empty",
		"- a\n":                    "must be a mapping",
		"{}\n":                     "has no list named images",
		"images: []\n":             "at least one entry",
		"images: text\n":           "at least one entry",
		"images: [text]\n":         "an entry must be a mapping",
		"images:\n\t- key: tabs\n": "images.yaml: yaml:",
	} {
		if _, err := parse("images.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestExactTagsOfOtherFormsAreAccepted(t *testing.T) {
	for _, tag := range []string{"v3.6.8", "1.30.5", "18.6.0-bookworm", "bookworm-20260101-slim", "20260101", "1.2.3-rc.1"} {
		if _, err := parse("images.yaml", []byte(strings.Replace(good, "1.26.4-bookworm", `"`+tag+`"`, 1))); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}
