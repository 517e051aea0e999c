package siteimage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// withFile is a base with a layer more, that holds one file.
func withFile(t *testing.T, base v1.Image, name, content string) v1.Image {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, header := range []*tar.Header{
		{Name: "./etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))},
	} {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(base, static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// typeOf is the type of an extension, "" for none.
func typeOf(list []mimeType, extension string) string {
	for _, t := range list {
		for _, e := range t.Extensions {
			if e == extension {
				return t.Name
			}
		}
	}
	return ""
}

func TestTheBasesOwnListOfTypesGoesFirst(t *testing.T) {
	const own = `
types {
    text/html  html;  # pages
    text/javascript js
        mjs;

    application/vnd.new+zip new;
    a/b "x y";
}
`
	plain := newBase(t, "amd64", types.DockerLayer)
	listed := withFile(t, plain, mimeTypesFile, own)
	for _, c := range []struct {
		title, file, extension, want string
		base                         v1.Image
	}{
		{title: "a type that castle has otherwise", extension: "js", want: "text/javascript", base: listed},
		{title: "a type that castle does not know", extension: "new", want: "application/vnd.new+zip",
			base: withFile(t, plain, "./"+mimeTypesFile, own)},
		{title: "a type that nginx does not know", extension: "xsl", want: "application/xslt+xml", base: listed},
		{title: "what would have to be quoted", extension: "x", base: listed},
		{title: "no list", extension: "js", want: "application/javascript", base: withFile(t, plain, "etc/nginx/nginx.conf", "")},
		{title: "a base that is no archive", extension: "js", want: "application/javascript", base: plain},
		{title: "a newer layer", extension: "new", want: "a/newer", base: withFile(t, listed, mimeTypesFile, "types { a/newer new; }")},
		{title: "a newer layer without it", extension: "new", base: withFile(t, listed, "etc/nginx/.wh.mime.types", "")},
	} {
		list, err := mimeTypes(c.base)
		if err != nil {
			t.Fatal(err)
		}
		if got := typeOf(list, c.extension); got != c.want {
			t.Errorf("%s: %q, want %q", c.title, got, c.want)
		}
	}
}

func TestCastlesListHasAllThatNginxsOwnHas(t *testing.T) {
	lookUpNginx(t)
	own, err := os.ReadFile("/etc/nginx/mime.types")
	if err != nil {
		t.Fatal(err)
	}
	known, extensions := mergeTypes(parseKnownTypes()), 0
	for _, line := range parseNginxTypes(string(own)) {
		for _, extension := range line.Extensions {
			extensions++
			if typeOf(known, extension) == "" {
				t.Errorf("%s %s is missing", line.Name, extension)
			}
		}
	}
	if extensions < 100 {
		t.Errorf("read %d extensions only", extensions)
	}
}

func TestNginxServesWhatSitesHaveWithItsType(t *testing.T) {
	want := map[string]string{
		"rss.xsl":                                "application/xslt+xml; charset=utf-8",
		"a.mov":                                  "video/quicktime",
		"a.m3u8":                                 "application/vnd.apple.mpegurl",
		"a.docx":                                 "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"a.xlsx":                                 "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"a.kml":                                  "application/vnd.google-earth.kml+xml; charset=utf-8",
		"a.xhtml":                                "application/xhtml+xml; charset=utf-8",
		"a.eot":                                  "application/vnd.ms-fontobject",
		"a.tiff":                                 "image/tiff",
		"a.flac":                                 "audio/flac",
		"a.opus":                                 "audio/ogg",
		"a.geojson":                              "application/geo+json; charset=utf-8",
		"a.yaml":                                 "application/yaml; charset=utf-8",
		"a.toml":                                 "application/toml; charset=utf-8",
		"a.jsonld":                               "application/ld+json; charset=utf-8",
		"a.glb":                                  "model/gltf-binary",
		"a.heic":                                 "image/heic",
		"a.jxl":                                  "image/jxl",
		"a.ttc":                                  "font/collection",
		"a.7z":                                   "application/x-7z-compressed",
		"a.tar.xz":                               "application/x-xz",
		"a.opml":                                 "text/x-opml; charset=utf-8",
		"a.srt":                                  "application/x-subrip; charset=utf-8",
		"a.sh":                                   "application/x-sh; charset=utf-8",
		"a.py":                                   "text/x-python; charset=utf-8",
		"a.asc":                                  "text/plain; charset=utf-8",
		"a.cast":                                 "application/x-asciicast; charset=utf-8",
		"PHOTO.JPG":                              "image/jpeg",
		"a b.txt":                                "text/plain; charset=utf-8",
		"100%.txt":                               "text/plain; charset=utf-8",
		"фото.txt":                               "text/plain; charset=utf-8",
		"a.mjs":                                  "text/javascript; charset=utf-8",
		"a.js":                                   "application/javascript; charset=utf-8",
		".well-known/apple-app-site-association": "application/json; charset=utf-8",
		".well-known/matrix/server":              "application/json; charset=utf-8",
		".well-known/acme-challenge/x":           "text/plain; charset=utf-8",
		".well-known/webfinger":                  "application/jrd+json; charset=utf-8",
		"a.unheard":                              "application/octet-stream",
		"LICENSE":                                "application/octet-stream",
	}
	files := map[string]string{"index.html": "home"}
	for name := range want {
		files[name] = name
	}
	n := startNginx(t, nginxOptions{files: files})
	for name, want := range want {
		resp, body := n.get(t, "/"+strings.NewReplacer(" ", "%20", "%", "%25").Replace(name))
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != want || body != name {
			t.Errorf("%s: %s as %s, want %s", name, resp.Status, got, want)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: without nosniff", name)
		}
	}
	if strings.Contains(n.log(t), "[") {
		t.Errorf("nginx complains: %s", n.log(t))
	}
}

func TestNginxStartsWithTheLongestNamesOfABasesTypes(t *testing.T) {
	longest := "text/" + strings.Repeat("x", longestTextType-len("text/"))
	list := fmt.Sprintf("types { %s longest; %sy longer; %s+xml very; }", longest, longest, strings.Repeat(longest, 3))
	n := startNginx(t, nginxOptions{
		files: map[string]string{"index.html": "home", "a.longest": "a", "a.longer": "a", "a.very": "a"},
		base:  withFile(t, newBase(t, "amd64", types.DockerLayer), mimeTypesFile, list),
	})
	for name, want := range map[string]string{"a.longest": longest + "; charset=utf-8", "a.longer": longest + "y"} {
		if resp, _ := n.get(t, "/"+name); resp.Header.Get("Content-Type") != want {
			t.Errorf("%s: %s, want %s", name, resp.Header.Get("Content-Type"), want)
		}
	}
}
