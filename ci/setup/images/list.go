package images

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// List is images.yaml in its own order.
type List []Image

// Get returns the image with this key. Its error names the keys there are.
func (l List) Get(key string) (Image, error) {
	keys := make([]string, 0, len(l))
	for _, image := range l {
		if image.Key == key {
			return image, nil
		}
		keys = append(keys, image.Key)
	}
	return Image{}, fmt.Errorf("images.yaml has no image with key %q; it has %s", key, strings.Join(keys, ", "))
}

// In returns the entries without a group and those of the groups, in the list's order. Its error names an unknown group
// and the groups there are.
func (l List) In(groups ...string) (List, error) {
	known := map[string]bool{}
	var some List
	for _, image := range l {
		if image.Group != "" {
			known[image.Group] = true
		}
		if image.Group == "" || slices.Contains(groups, image.Group) {
			some = append(some, image)
		}
	}
	for _, group := range groups {
		if !known[group] {
			return nil, fmt.Errorf("images.yaml has no group %q; it has %s", group, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return some, nil
}

// Load reads and validates the list at path. A list with mistakes gives one error with a line for each of them:
// "images.yaml:12: golang: tag …".
func Load(path string) (List, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of images: %w", err)
	}
	return parse(filepath.Base(path), data)
}

func parse(file string, data []byte) (List, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := reader{file: file, lines: strings.Split(string(data), "\n")}
	list := r.document(&document)
	r.duplicates(list)
	if len(r.mistakes) > 0 {
		return nil, errors.Join(r.mistakes...)
	}
	images := make(List, len(list))
	for i, entry := range list {
		images[i] = entry.Image
	}
	return images, nil
}
