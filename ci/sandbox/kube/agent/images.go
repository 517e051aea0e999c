//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const imagesFile = "images.json"

// images remembers which node has pulled which image, on disk, as a node's own disk does.
type images struct {
	file string

	mu      sync.Mutex
	pulled  map[string]map[string]bool // by node, by image
	pulling map[[2]string]chan struct{}
}

func openImages(file string) (*images, error) {
	i := &images{file: file, pulled: map[string]map[string]bool{}, pulling: map[[2]string]chan struct{}{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return i, os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &i.pulled); err != nil {
		return nil, fmt.Errorf("pulled images in %s: %w", file, err)
	}
	return i, nil
}

// pull calls wait once for a node and image, whoever else asks meanwhile; true when this call did.
func (i *images) pull(ctx context.Context, node, image string, wait func(context.Context) error) (did bool, err error) {
	key := [2]string{node, image}
	for {
		i.mu.Lock()
		if i.pulled[node][image] {
			i.mu.Unlock()
			return false, nil
		}
		other := i.pulling[key]
		if other == nil {
			other = make(chan struct{})
			i.pulling[key] = other
			i.mu.Unlock()
			err := wait(ctx)
			i.mu.Lock()
			delete(i.pulling, key)
			close(other)
			if err == nil {
				if i.pulled[node] == nil {
					i.pulled[node] = map[string]bool{}
				}
				i.pulled[node][image] = true
				err = i.save()
			}
			i.mu.Unlock()
			return true, err
		}
		i.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (i *images) forget(node string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.pulled, node)
	return i.save()
}

func (i *images) save() error {
	data, err := json.Marshal(i.pulled)
	if err != nil {
		return err
	}
	next := i.file + ".new"
	if err := os.WriteFile(next, data, 0o644); err != nil {
		return err
	}
	return os.Rename(next, i.file)
}

// program is the path of the program that an image stands for, or "".
func program(known map[string]string, image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	for {
		if path := known[name]; path != "" {
			return path
		}
		slash := strings.LastIndex(name, "/")
		if slash < 0 {
			return ""
		}
		name = name[:slash]
	}
}
