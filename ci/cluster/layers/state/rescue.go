package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
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

// PutBack writes a state that an earlier run had to leave where it belongs. It is false, and sets the file aside, where a later state
// is there already; and false where nothing was left.
func (s Store) PutBack(ctx context.Context, layer string) (done bool, err error) {
	left := rescued(s.Folder, layer)
	data, err := os.ReadFile(left)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	newer, version, err := s.isNewer(ctx, layer, data)
	if err != nil {
		return false, fmt.Errorf("%s, which an earlier run could not write where it belongs: %w", left, err)
	}
	if !newer {
		return false, os.Rename(left, left+".superseded")
	}
	if err := s.vault().put(ctx, nameOf(layer), data, version); err != nil {
		return false, fmt.Errorf("write the state of layer %s, which an earlier run could not: %w", layer, err)
	}
	return true, os.Remove(left)
}

func (s Store) isNewer(ctx context.Context, layer string, data []byte) (newer bool, version string, err error) {
	mine, err := readHeader(data)
	if err != nil {
		return false, "", err
	}
	there, version, err := s.vault().get(ctx, nameOf(layer))
	if errors.Is(err, fs.ErrNotExist) {
		return true, "", nil
	}
	if err != nil {
		return false, "", err
	}
	known, err := readHeader(there)
	if err != nil {
		return false, "", fmt.Errorf("the state that is there: %w", err)
	}
	return known.Lineage == mine.Lineage && mine.Serial > known.Serial, version, nil
}
