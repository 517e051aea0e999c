package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
)

// keptCopies is how many copies of a layer's state are kept.
const keptCopies = 10

const (
	copiesFolder = "copies"
	copyTime     = "20060102T150405.000Z" // names sort by time
	copySuffix   = ".tfstate"
)

func copiesOf(layer string) string { return path.Join(layer, copiesFolder) }

// Copies are the names of a layer's copies, which are the times that they were made at, the oldest first.
func (s Store) Copies(ctx context.Context, layer string) ([]string, error) {
	names, err := s.vault().list(ctx, copiesOf(layer))
	if err != nil {
		return nil, fmt.Errorf("list the copies of the state of layer %s: %w", layer, err)
	}
	var found []string
	for _, name := range names {
		at, isCopy := strings.CutSuffix(path.Base(name), copySuffix)
		if _, err := time.Parse(copyTime, at); isCopy && err == nil {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Copy keeps a layer's state as it is now, encrypted as it is, and forgets the oldest copy where there are more than ten. A state
// that is the same as its newest copy is not copied again, and neither is one that is not there.
func (s Store) Copy(ctx context.Context, layer string, now time.Time) error {
	data, _, err := s.vault().get(ctx, nameOf(layer))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy the state of layer %s: %w", layer, err)
	}
	known, err := s.Copies(ctx, layer)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		newest, err := s.copy(ctx, layer, known[len(known)-1])
		if err == nil && bytes.Equal(newest, data) {
			return nil
		}
	}
	if err := s.vault().put(ctx, copyName(layer, now.UTC().Format(copyTime)), data, ""); err != nil {
		return fmt.Errorf("copy the state of layer %s: %w", layer, err)
	}
	for len(known) >= keptCopies {
		if err := s.vault().delete(ctx, copyName(layer, known[0]), ""); err != nil {
			return err
		}
		known = known[1:]
	}
	return nil
}

func copyName(layer, at string) string { return path.Join(copiesOf(layer), at+copySuffix) }

func (s Store) copy(ctx context.Context, layer, at string) ([]byte, error) {
	data, _, err := s.vault().get(ctx, copyName(layer, at))
	return data, err
}

// Restore puts a copy in the place of a layer's state; what is there is copied first. What the world has and the copy does not know is
// taken up by the next create.
func (s Store) Restore(ctx context.Context, layer, at string, now time.Time) error {
	data, err := s.copy(ctx, layer, at)
	if errors.Is(err, fs.ErrNotExist) {
		known, _ := s.Copies(ctx, layer)
		return fmt.Errorf("layer %s has no copy %q; it has %s", layer, at, strings.Join(append(known, "no other"), ", "))
	}
	if err != nil {
		return err
	}
	if err := s.Copy(ctx, layer, now); err != nil {
		return err
	}
	_, version, err := s.vault().get(ctx, nameOf(layer))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.vault().put(ctx, nameOf(layer), data, version); err != nil {
		return fmt.Errorf("restore the state of layer %s: %w", layer, err)
	}
	return nil
}

// header is what of a state is not encrypted. Source: OpenTofu v1.12, internal/encryption/state.go, statedata.
type header struct {
	Serial uint64 `json:"serial"`
	// Lineage is the same in all states of one life of a layer. It is empty in one that was never written where it belongs.
	Lineage   string `json:"lineage"`
	Encrypted string `json:"encrypted_data"`
}

func readHeader(data []byte) (header, error) {
	var h header
	if err := json.Unmarshal(data, &h); err != nil || h.Encrypted == "" {
		return header{}, errors.Join(errors.New("it is no encrypted state of OpenTofu's"), err)
	}
	return h, nil
}

// Empty takes the states away, whatever they hold, and keeps each as a copy; it names the layers that had one. What an earlier run could not
// write where it belongs is set aside, and no VM counts as unfinished any more.
func (s Store) Empty(ctx context.Context, now time.Time) (emptied []string, err error) {
	for _, layer := range layers.All {
		had, err := s.takeAway(ctx, layer.Name, now)
		if err != nil {
			return emptied, err
		}
		if had {
			emptied = append(emptied, layer.Name)
		}
	}
	return emptied, errors.Join(s.forgetRescued(), s.ForgetUnfinished(ctx))
}

// takeAway removes a layer's state, whatever it holds, once there is a copy of it. It tells whether there was one.
func (s Store) takeAway(ctx context.Context, layer string, now time.Time) (had bool, err error) {
	_, version, err := s.vault().get(ctx, nameOf(layer))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the state of layer %s: %w", layer, err)
	}
	if err := s.Copy(ctx, layer, now); err != nil {
		return true, err
	}
	if err := s.vault().delete(ctx, nameOf(layer), version); err != nil {
		return true, fmt.Errorf("the state of layer %s: %w", layer, err)
	}
	return true, nil
}
