package realsites

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

// lfs is a site whose pictures are in Git LFS: the commit holds pointers, the clone their content.
var lfs = Site{
	Name:  "lfs",
	About: "pictures in Git LFS, processed by Hugo",
	write: writeLFS,
}

func writeLFS(t *tree) error {
	picture, err := drawing()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(picture)
	oid := hex.EncodeToString(sum[:])
	return t.write(map[string]string{
		".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n",
		"hugo.toml":      "baseURL = \"https://example.org/\"\ntitle = \"Pictures\"\nlocale = \"en\"\n",
		"layouts/all.html": `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{{ .Title }}</title></head>
<body><h1>{{ .Title }}</h1>
{{ with .Resources.Get "picture.png" }}{{ with .Resize "200x" }}<img src="{{ .RelPermalink }}" width="{{ .Width }}" height="{{ .Height }}" alt="A gradient">{{ end }}{{ end }}
{{ range .Pages }}<p><a href="{{ .RelPermalink }}">{{ .Title }}</a></p>{{ end }}</body>
</html>
`,
		"content/_index.md":                                        "---\ntitle: Pictures\n---\n",
		"content/posts/_index.md":                                  "---\ntitle: Posts\n---\n",
		"content/posts/a/index.md":                                 "---\ntitle: A picture\n---\n",
		"content/posts/a/picture.png":                              fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(picture)),
		".git/lfs/objects/" + oid[:2] + "/" + oid[2:4] + "/" + oid: string(picture),
	})
}

// drawing is a picture that compresses to more than a pointer's size.
func drawing() ([]byte, error) {
	canvas := image.NewRGBA(image.Rect(0, 0, 640, 400))
	for y := range 400 {
		for x := range 640 {
			canvas.Set(x, y, color.RGBA{uint8(x * 255 / 640), uint8(y * 255 / 400), uint8((x ^ y) & 255), 255})
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, canvas)
	return out.Bytes(), err
}
