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

	"github.com/google/renameio/v2"
)

const imagesFile = "images.json"

// Images are what each node has pulled, for its pods or before there were any. They are kept on disk, as a node's own disk
// keeps them.
type Images struct {
	file string
	take func(ctx context.Context, node, image string) error // takes the time that pulling an image takes; its error is a registry's

	mu      sync.Mutex
	pulled  map[string]map[string]bool // by node, by image
	pulling map[[2]string]chan struct{}
}

// OpenImages reads what the nodes whose disks are in a folder have pulled. take is how they pull the rest.
func OpenImages(folder string, take func(ctx context.Context, node, image string) error) (*Images, error) {
	i := &Images{file: filepath.Join(folder, imagesFile), pulled: map[string]map[string]bool{}, pulling: map[[2]string]chan struct{}{}, take: take}
	data, err := os.ReadFile(i.file)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &i.pulled); err != nil {
		return nil, fmt.Errorf("pulled images in %s: %w", i.file, err)
	}
	return i, nil
}

// Pull returns when the image is on the node, whoever else pulls it meanwhile. begins is called where this call has to
// pull it; did tells that it has.
func (i *Images) Pull(ctx context.Context, node, image string, begins func()) (did bool, err error) {
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
			begins()
			err := i.take(ctx, node, image)
			i.mu.Lock()
			delete(i.pulling, key)
			close(other)
			if err == nil {
				err = ctx.Err() // the disk may have been emptied since
			}
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

// Forget is that a node's disk is emptied.
func (i *Images) Forget(node string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.pulled, node)
	return i.save()
}

// ForgetAll is that all disks are emptied.
func (i *Images) ForgetAll() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.pulled)
	return i.save()
}

func (i *Images) save() error {
	data, err := json.Marshal(i.pulled)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(i.file), 0o755)
	}
	if err != nil {
		return err
	}
	return renameio.WriteFile(i.file, data, 0o644)
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
