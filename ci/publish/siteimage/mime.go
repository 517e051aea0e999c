package siteimage

import (
	"archive/tar"
	_ "embed"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

//go:embed mime.types
var knownTypes string

// mimeTypesFile is nginx's own list, where every image and package of nginx has it.
const mimeTypesFile = "etc/nginx/mime.types"

// mimeType is a line of nginx's types block.
type mimeType struct {
	Name       string
	Extensions []string
}

// mimeTypes are the types by which the site is served: nginx's own list of the base, then what castle knows beyond it.
func mimeTypes(base v1.Image) ([]mimeType, error) {
	own, err := ownMimeTypes(base)
	if err != nil {
		return nil, err
	}
	return mergeTypes(parseNginxTypes(own), parseKnownTypes()), nil
}

// mergeTypes sorts types. Of an extension in several lists the first one counts, since nginx warns of a second type.
func mergeTypes(lists ...[]mimeType) []mimeType {
	types := map[string][]string{}
	taken := map[string]bool{}
	for _, list := range lists {
		for _, t := range list {
			for _, extension := range t.Extensions {
				if extension = lowerASCII(extension); !taken[extension] {
					taken[extension] = true
					types[t.Name] = append(types[t.Name], extension)
				}
			}
		}
	}
	var merged []mimeType
	for _, name := range slices.Sorted(maps.Keys(types)) {
		merged = append(merged, mimeType{name, slices.Sorted(slices.Values(types[name]))})
	}
	return merged
}

func parseKnownTypes() []mimeType {
	var types []mimeType
	for line := range strings.Lines(knownTypes) {
		if words := strings.Fields(line); len(words) > 1 && words[0] != "#" {
			types = append(types, mimeType{words[0], words[1:]})
		}
	}
	return types
}

// parseNginxTypes reads a types block of nginx. What could mean anything but a type and its extensions is left out.
func parseNginxTypes(text string) []mimeType {
	var bare strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		bare.WriteString(line + "\n")
	}
	_, block, _ := strings.Cut(bare.String(), "{")
	block, _, _ = strings.Cut(block, "}")
	var types []mimeType
	for statement := range strings.SplitSeq(block, ";") {
		words := strings.Fields(statement)
		if len(words) > 1 && strings.Contains(words[0], "/") && !strings.ContainsAny(statement, `"'\$`) {
			types = append(types, mimeType{words[0], words[1:]})
		}
	}
	return types
}

// ownMimeTypes is the base's mimeTypesFile, "" where it has none. The file is near the beginning of its layer, and the
// layers above it are small: little is decompressed.
func ownMimeTypes(base v1.Image) (string, error) {
	layers, err := base.Layers()
	if err != nil {
		return "", err
	}
	for _, l := range slices.Backward(layers) {
		text, found, err := fileOfLayer(l, mimeTypesFile)
		if err != nil || found {
			return text, err
		}
	}
	return "", nil
}

// fileOfLayer finds a file in a layer; one that the layer removes is found empty. A layer that is no archive, as image
// formats allow, has none.
func fileOfLayer(l v1.Layer, name string) (text string, found bool, err error) {
	r, err := l.Uncompressed()
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	removed := path.Join(path.Dir(name), ".wh."+path.Base(name))
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return "", false, nil
		case err != nil:
			return "", false, err
		}
		switch entry := path.Clean(strings.TrimPrefix(header.Name, "/")); {
		case entry == removed:
			return "", true, nil
		case entry == name && header.Typeflag == tar.TypeReg:
			content, err := io.ReadAll(io.LimitReader(archive, 1<<20))
			return string(content), true, err
		}
	}
}

// longestTextType is the length of a name that nginx's table of types with a charset holds: with a longer one it does not
// start. Source: ngx_http_merge_types in src/http/ngx_http.c and ngx_hash_init in src/core/ngx_hash.c of nginx 1.22.
const longestTextType = 46

// isText says whether a type's files are text, which this server's are in UTF-8. nginx counts text/html itself.
func (t mimeType) isText() bool {
	if t.Name == "text/html" || len(t.Name) > longestTextType {
		return false
	}
	switch t.Name {
	case "application/javascript", "application/json", "application/xml", "application/yaml", "application/toml",
		"application/sql", "application/graphql", "application/x-ndjson", "application/x-sh", "application/x-subrip",
		"application/x-asciicast", "application/n-triples", "application/n-quads":
		return true
	}
	return strings.HasPrefix(t.Name, "text/") || strings.HasSuffix(t.Name, "+xml") || strings.HasSuffix(t.Name, "+json")
}

// TextTypes are the names of the types whose answers say that they are in UTF-8.
func (n nginxSettings) TextTypes() []string {
	var names []string
	for _, t := range n.Types {
		if t.isText() {
			names = append(names, t.Name)
		}
	}
	return names
}
