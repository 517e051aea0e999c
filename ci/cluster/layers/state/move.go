package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
)

// Kept is the state of one layer as it is kept, encrypted by OpenTofu.
type Kept struct {
	Layer   string
	Serial  uint64
	Lineage string
	Data    []byte
}

// Kept gives all states that there are, in the layers' order.
func (s Store) Kept(ctx context.Context) ([]Kept, error) {
	var list []Kept
	for _, layer := range layers.All {
		data, _, err := s.vault().get(ctx, nameOf(layer.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the state of layer %s: %w", layer.Name, err)
		}
		kept, err := keep(layer.Name, data)
		if err != nil {
			return nil, err
		}
		list = append(list, kept)
	}
	return list, nil
}

func keep(layer string, data []byte) (Kept, error) {
	h, err := readHeader(data)
	if err != nil {
		return Kept{}, fmt.Errorf("the state of layer %s: %w", layer, err)
	}
	return Kept{Layer: layer, Serial: h.Serial, Lineage: h.Lineage, Data: data}, nil
}

// Decrypts opens states where nothing else sees them, so that none is taken in that its passphrase does not open.
func (s Store) Decrypts(ctx context.Context, list []Kept) error {
	folder, err := os.MkdirTemp("", "states-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	local := *s.Cluster
	local.State = config.State{Backend: config.StateLocal}
	probe := Store{Cluster: &local, Folder: folder, Tofu: s.Tofu, Environment: s.Environment}
	for _, kept := range list {
		if err := folderVault(folder).put(ctx, nameOf(kept.Layer), kept.Data, ""); err != nil {
			return err
		}
		if _, err := probe.pull(ctx, kept.Layer); err != nil {
			return err
		}
	}
	return nil
}

// Accept writes states that came from elsewhere. All are looked at before the first is written: one that this passphrase does not open,
// or whose place has another state, is refused, with replace only the first. What is replaced is copied before. Each is read again,
// and must be the same. What an interrupted call has written, the next one leaves as it is.
func (s Store) Accept(ctx context.Context, list []Kept, replace bool, now time.Time) (written []string, err error) {
	if err := s.Decrypts(ctx, list); err != nil {
		return nil, fmt.Errorf("nothing was written: the states' passphrase of this cluster does not open what is to come in: %w", err)
	}
	versions := map[string]string{}
	var others []error
	for _, kept := range list {
		there, version, err := s.vault().get(ctx, nameOf(kept.Layer))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			versions[kept.Layer] = ""
		case err != nil:
			return nil, fmt.Errorf("read the state of layer %s: %w", kept.Layer, err)
		case bytes.Equal(there, kept.Data):
		case !replace:
			others = append(others, fmt.Errorf("layer %s has a state already: %s, and what is to come in is %s", kept.Layer, words(there), words(kept.Data)))
		default:
			versions[kept.Layer] = version
		}
	}
	if len(others) > 0 {
		return nil, errors.Join(append([]error{errors.New("nothing was written")}, others...)...)
	}
	for _, kept := range list {
		version, todo := versions[kept.Layer]
		if !todo {
			continue
		}
		if err := s.Copy(ctx, kept.Layer, now); err != nil {
			return written, err
		}
		if err := s.vault().put(ctx, nameOf(kept.Layer), kept.Data, version); err != nil {
			return written, fmt.Errorf("write the state of layer %s: %w", kept.Layer, err)
		}
		if there, _, err := s.vault().get(ctx, nameOf(kept.Layer)); err != nil || !bytes.Equal(there, kept.Data) {
			return written, errors.Join(fmt.Errorf("the state of layer %s was written, and what is read there is another one", kept.Layer), err)
		}
		written = append(written, kept.Layer)
	}
	return written, nil
}

// words tells one state from another.
func words(data []byte) string {
	h, err := readHeader(data)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("serial %d of lineage %q", h.Serial, h.Lineage)
}

// Move moves all states from another store to this one, whose states must be none or the same. The store that they come from loses
// them last, when both sides were read again, and keeps each as a copy.
func (s Store) Move(ctx context.Context, from Store, now time.Time) (moved []string, err error) {
	list, err := from.Kept(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.Accept(ctx, list, false, now); err != nil {
		return nil, err
	}
	for _, kept := range list {
		before, err := from.Resources(ctx, kept.Layer)
		if err != nil {
			return nil, err
		}
		after, err := s.Resources(ctx, kept.Layer)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(before, after) {
			return nil, fmt.Errorf("the state of layer %s holds %v where it was, and %v where it is to be: both are still there", kept.Layer, before, after)
		}
	}
	for _, kept := range list {
		if _, err := from.takeAway(ctx, kept.Layer, now); err != nil {
			return moved, fmt.Errorf("the state of layer %s is in both stores; the old one could not be removed: %w", kept.Layer, err)
		}
		moved = append(moved, kept.Layer)
	}
	return moved, nil
}

// LeftLocal names the layers that have a state in the local folder although the cluster's are elsewhere.
func (s Store) LeftLocal() (left []string, err error) {
	if s.Bucket == nil {
		return nil, nil
	}
	for _, layer := range layers.All {
		switch _, err := os.Stat(filepath.Join(s.Folder, layer.Name, file)); {
		case err == nil:
			left = append(left, layer.Name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return left, nil
}
