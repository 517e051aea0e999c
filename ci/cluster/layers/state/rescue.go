package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/cluster/layers"
)

// ErroredFile is where OpenTofu leaves a state, encrypted, that it could not write where it belongs: in the folder that it runs in.
// Source: OpenTofu v1.12, internal/backend/local/backend_apply.go, backupStateForError.
const ErroredFile = "errored.tfstate"

const rescuedFolder = "rescued" // in the folder of states

// Rescue keeps a state that OpenTofu has left in its own folder, which is gone with the run. folder is that of the states.
func Rescue(left, folder, layer string) error {
	data, err := os.ReadFile(left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(folder, rescuedFolder), 0o700)
	}
	if err == nil {
		err = renameio.WriteFile(rescued(folder, layer), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the state of layer %s that could not be written: %w", layer, err)
	}
	return nil
}

func rescued(folder, layer string) string {
	return filepath.Join(folder, rescuedFolder, layer+".tfstate")
}

// PutBack mends a layer's state that an earlier run could not write, and tells what it did, "" where nothing was to be done: one that was cut
// off gives way to its newest copy, and one that was left elsewhere is written where it belongs. What cannot be used, since a later state
// is there or since it was cut off itself, is set aside: the layers then take up what the world has.
func (s Store) PutBack(ctx context.Context, layer string) (did string, err error) {
	replaced, err := s.replaceCut(ctx, layer)
	if err != nil {
		return replaced, fmt.Errorf("the state of layer %s was cut off: %w", layer, err)
	}
	did, err = s.putBackLeft(ctx, layer)
	if replaced != "" && did != "" {
		did = replaced + "; " + did
	}
	return cmp.Or(did, replaced), err
}

// replaceCut sets a state aside that is no JSON, and puts its newest copy in its place, where it has one that is. OpenTofu writes a local state in
// place, so that a full disk or a power cut can leave the beginning of it, or nothing; a store of objects takes all or nothing. Source:
// OpenTofu v1.12, internal/states/statemgr/filesystem.go.
func (s Store) replaceCut(ctx context.Context, layer string) (did string, err error) {
	if s.Bucket != nil {
		return "", nil
	}
	file := folderVault(s.Folder).file(nameOf(layer))
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Valid(data) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	const why = "a full disk or a power cut has cut it off"
	copies, err := s.Copies(ctx, layer)
	if err != nil {
		return "", err
	}
	for _, at := range slices.Backward(copies) {
		kept, err := s.copy(ctx, layer, at)
		if err != nil {
			return "", err
		}
		if json.Valid(kept) {
			// The copy takes its place in one step: whoever is killed before that finds it cut off again, and not missing.
			if err := renameio.WriteFile(asideOf(file), data, 0o600); err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, and the copy of %s is in its place", nowAt(why, file), at), s.vault().put(ctx, nameOf(layer), kept, "")
		}
	}
	return setAside(file, why)
}

func (s Store) putBackLeft(ctx context.Context, layer string) (did string, err error) {
	left := rescued(s.Folder, layer)
	data, err := os.ReadFile(left)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	mine, err := readHeader(data)
	if err != nil {
		return setAside(left, fmt.Sprintf("what an earlier run had kept of it cannot be read: %v", err))
	}
	newer, version, err := s.isNewer(ctx, layer, mine)
	if err != nil {
		return "", fmt.Errorf("the state of layer %s, of which an earlier run has kept a later one: %w", layer, err)
	}
	if !newer {
		return setAside(left, "the one that an earlier run had kept is of no use, since another one has been written meanwhile")
	}
	if err := s.vault().put(ctx, nameOf(layer), data, version); err != nil {
		return "", fmt.Errorf("write the state of layer %s, which an earlier run could not: %w", layer, err)
	}
	return "an earlier run could not write it where it belongs, and had kept it", os.Remove(left)
}

// forgetRescued sets aside what earlier runs have kept: no later one is to put it back.
func (s Store) forgetRescued() (err error) {
	for _, layer := range layers.All {
		left := rescued(s.Folder, layer.Name)
		if _, statErr := os.Stat(left); statErr == nil {
			_, asideErr := setAside(left, "")
			err = errors.Join(err, asideErr)
		}
	}
	return err
}

func setAside(file, why string) (string, error) {
	return nowAt(why, file), os.Rename(file, asideOf(file))
}

func asideOf(file string) string { return file + ".unused" }

func nowAt(why, file string) string { return fmt.Sprintf("%s; it is %s now", why, asideOf(file)) }

func (s Store) isNewer(ctx context.Context, layer string, mine header) (newer bool, version string, err error) {
	there, version, err := s.vault().get(ctx, nameOf(layer))
	if errors.Is(err, fs.ErrNotExist) {
		return true, "", nil
	}
	if err != nil {
		return false, "", err
	}
	known, err := readHeader(there)
	return known.Lineage == mine.Lineage && mine.Serial > known.Serial, version, err
}
