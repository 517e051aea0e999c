package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tazlab.net/castle/ci/cluster/layers"
)

// unfinishedFile names, with the states, the VMs that were not there when a create set out to make them. A run that
// is killed leaves clones behind that no state knows and that carry no tag yet: only this tells them from somebody
// else's. A machine is taken out of it before it is given its configuration, so that nothing in it ever holds data.
const (
	unfinishedFile = "unfinished-vms.json"
	asideFile      = unfinishedFile + ".aside"
)

// unfinished is that note, and which state of the layer platform it was written beside.
type unfinished struct {
	Serial  uint64 `json:"serial"` // 0 where there was no state
	Lineage string `json:"lineage"`
	VMs     []int  `json:"vms"`
}

// UselessNote is a note that does not say which VMs an earlier create had begun.
type UselessNote struct{ why string }

func (u *UselessNote) Error() string {
	return "the note of unfinished VMs does not say which an earlier create had begun: " + u.why
}

// cutState is a state that a kill or a full disk has cut off: the next run mends it before anything else.
type cutState struct{ error }

// Unfinished are the ids in the note. The error is a *UselessNote where it cannot be read, and where it does not fit
// the state of the layer platform: that is another life of the layer, or older than the note.
func (s Store) Unfinished(ctx context.Context) (ids []int, err error) {
	if old := s.oldNote(); old != "" {
		return nil, &UselessNote{"it is in this engine's volume, and the states are not"}
	}
	note, err := s.readNote(ctx)
	if note == nil {
		return nil, err
	}
	now, err := s.platform(ctx)
	switch {
	case err != nil:
		return note.VMs, err
	case note.Lineage != "" && note.Lineage != now.Lineage:
		return nil, &UselessNote{fmt.Sprintf("it names %v, and the state of layer %s that it was written beside is gone",
			note.VMs, layers.Platform)}
	case note.Serial > now.Serial:
		return nil, &UselessNote{fmt.Sprintf("it names %v, and was written beside serial %d of the state of layer %s, "+
			"which has serial %d", note.VMs, note.Serial, layers.Platform, now.Serial)}
	}
	return note.VMs, nil
}

// readNote reads the note, whatever it fits; it is nil where there is none.
func (s Store) readNote(ctx context.Context) (*unfinished, error) {
	data, _, err := s.vault().get(ctx, unfinishedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which VMs an earlier create had begun: %w", err)
	}
	note := &unfinished{}
	if err := json.Unmarshal(data, note); err != nil {
		return nil, &UselessNote{err.Error()}
	}
	return note, nil
}

// Begun is Unfinished for who removes nothing by it: a note that says nothing names none, and one beside a state that
// is cut off is believed.
func (s Store) Begun(ctx context.Context) ([]int, error) {
	ids, err := s.Unfinished(ctx)
	_, useless := errors.AsType[*UselessNote](err)
	_, cut := errors.AsType[*cutState](err)
	if useless || cut {
		err = nil
	}
	return ids, err
}

// NoteUnfinished writes the note, and removes one that names nothing.
func (s Store) NoteUnfinished(ctx context.Context, ids []int) error {
	if len(ids) == 0 {
		return s.ForgetUnfinished(ctx)
	}
	now, err := s.platform(ctx)
	if err != nil {
		return err
	}
	return s.writeNote(ctx, unfinished{Serial: now.Serial, Lineage: now.Lineage, VMs: ids})
}

func (s Store) writeNote(ctx context.Context, note unfinished) error {
	data, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return s.overwrite(ctx, unfinishedFile, data)
}

// ForgetUnfinished removes the note: from here on the VMs in it hold data, or they are gone.
func (s Store) ForgetUnfinished(ctx context.Context) error {
	_, version, err := s.vault().get(ctx, unfinishedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.vault().delete(ctx, unfinishedFile, version)
}

// ForgetUnfinishedVM takes one VM out of the note: it is about to be configured. OpenTofu may be writing the state
// meanwhile, which is not read.
func (s Store) ForgetUnfinishedVM(ctx context.Context, id int) error {
	note, err := s.readNote(ctx)
	if note == nil || !slices.Contains(note.VMs, id) {
		return err
	}
	note.VMs = slices.DeleteFunc(note.VMs, func(other int) bool { return other == id })
	if len(note.VMs) == 0 {
		return s.ForgetUnfinished(ctx)
	}
	return s.writeNote(ctx, *note)
}

// SetUnfinishedAside keeps a useless note under another name, which it returns: nothing is removed on a guess.
func (s Store) SetUnfinishedAside(ctx context.Context) (name string, err error) {
	if old := s.oldNote(); old != "" {
		return asideFile, os.Rename(old, filepath.Join(s.Folder, asideFile))
	}
	data, version, err := s.vault().get(ctx, unfinishedFile)
	if err == nil {
		err = s.overwrite(ctx, asideFile, data)
	}
	if err == nil {
		err = s.vault().delete(ctx, unfinishedFile, version)
	}
	if err != nil {
		return "", fmt.Errorf("set a note of unfinished VMs aside: %w", err)
	}
	return asideFile, nil
}

// oldNote is the file of a note that an earlier castle has kept apart from states that are in S3; "" where there is
// none.
func (s Store) oldNote() string {
	file := filepath.Join(s.Folder, unfinishedFile)
	if s.Bucket == nil {
		return ""
	}
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// platform is the header of the layer platform's state, the zero one where there is none.
func (s Store) platform(ctx context.Context) (header, error) {
	data, _, err := s.vault().get(ctx, nameOf(layers.Platform))
	if errors.Is(err, fs.ErrNotExist) {
		return header{}, nil
	}
	if err != nil {
		return header{}, fmt.Errorf("read the state of layer %s: %w", layers.Platform, err)
	}
	now, err := readHeader(data)
	if err != nil {
		return header{}, &cutState{fmt.Errorf("the state of layer %s: %w", layers.Platform, err)}
	}
	return now, nil
}

// overwrite writes a file, whatever is in its place.
func (s Store) overwrite(ctx context.Context, name string, data []byte) error {
	_, version, err := s.vault().get(ctx, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.vault().put(ctx, name, data, version)
	}
	if err != nil {
		return fmt.Errorf("write %s beside the states: %w", name, err)
	}
	return nil
}
