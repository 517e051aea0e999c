package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
	"tazlab.net/castle/ci/test/world"
)

// postcss is what Hugo starts for a style sheet: a program of the site's packages. This one writes a picture of its
// own over every file that it finds in a cache.
const postcss = `#!/usr/bin/env node
const fs = require('fs'), path = require('path'), folder = '/var/cache/castle'
const poison = fs.readFileSync(path.join(__dirname, '..', 'poison.png'))
for (const name of fs.readdirSync(folder, {recursive: true})) {
	const file = path.join(folder, name)
	if (fs.statSync(file).isFile()) fs.writeFileSync(file, poison)
}
console.log('.poisoned{color:red}')
`

// picture is a PNG of one colour.
func picture(t *testing.T, of color.Color) string {
	t.Helper()
	drawn := image.NewRGBA(image.Rect(0, 0, 16, 16))
	draw.Draw(drawn, drawn.Bounds(), image.NewUniform(of), image.Point{}, draw.Src)
	var text bytes.Buffer
	if err := png.Encode(&text, drawn); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Two sites are published by one engine, and one of them spoils every cache that its code can write. What the other
// one publishes next has the bytes that it had before.
func TestASiteCannotChangeWhatAnotherOnePublishes(t *testing.T) {
	needs.Most(t)
	w := world.New(t)
	const front = "<!doctype html><html lang=en><head><meta charset=utf-8><title>{{ .Title }}</title>"
	const kinds = "disableKinds = ['taxonomy', 'term']\n"
	const dot = `{{ with (resources.Get "dot.png").Resize "8x8" }}<img src="{{ .RelPermalink }}">{{ end }}`
	const style = `<style>{{ (resources.Get "main.css" | css.PostCSS).Content | safeCSS }}</style>`
	good := newSite(t, map[string]string{
		"hugo.toml":         "baseURL = 'https://example.org/'\ntitle = 'Pictures'\n" + kinds,
		"assets/dot.png":    picture(t, color.White),
		"layouts/home.html": front + "</head><body>" + dot + "</body></html>",
	})
	evil := newSite(t, map[string]string{
		"hugo.toml": "baseURL = 'https://example.net/'\ntitle = 'Poison'\n" + kinds +
			"[security.node.permissions]\ndisable = true\n",
		"assets/main.css":           "body{color:blue}",
		"node_modules/poison.png":   picture(t, color.Black),
		"node_modules/.bin/postcss": postcss,
		"layouts/home.html":         front + style + "</head><body></body></html>",
	})
	if err := os.Chmod(filepath.Join(evil, "node_modules", ".bin", "postcss"), 0o755); err != nil {
		t.Fatal(err)
	}
	world.CommitAll(t, evil, "Let it be started")

	first := publishJSON(t, w, good, "--path=.")
	tell.Fault(t, "another site of the same engine, whose code writes over every file of every cache that it sees")
	poisoned := publishJSON(t, w, evil, "--path=.")
	if page := fileIn(t, pulled(t, w, poisoned), "srv/www/index.html"); !strings.Contains(page, ".poisoned") {
		t.Fatalf("the site's own code did not run:\n%s", page)
	}
	filetest.Write(t, filepath.Join(good, "README.md"), "No part of the site.\n") // so that it is built again
	world.CommitAll(t, good, "Explain")
	second := publishJSON(t, w, good, "--path=.")
	was, is := contents(t, w, first), contents(t, w, second)
	if !slices.Equal(was, is) {
		t.Errorf("the layers were %v and are %v", was, is)
	}
	tell.Observation(t, 0, "all %d layers of the site have the bytes that they had before", len(is))
}

// contents are the digests of what the layers of a published image unpack to.
func contents(t *testing.T, w *world.World, published report.Result) []v1.Hash {
	t.Helper()
	config, err := pulled(t, w, published).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS.DiffIDs
}
