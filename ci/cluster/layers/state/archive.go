package state

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"filippo.io/age"

	"tazlab.net/castle/ci/cluster/layers"
)

// An archive of states is a tar in age's encryption: contentsFile first, then each layer's state as OpenTofu encrypted it, below the
// name that it has in a vault.

const (
	contentsFile = "castle-states.json"
	archiveForm  = 1
	// maxState bounds what is read of one state, in bytes; one of a large cluster has some hundred thousand.
	maxState = 64 << 20
)

// contentsOf an archive is what it says of itself.
type contentsOf struct {
	Form    int       `json:"form"`
	Cluster string    `json:"cluster"`
	Made    time.Time `json:"made"`
	Layers  []string  `json:"layers"`
}

// Export writes an archive of all states for whoever holds a recipient's key.
func (s Store) Export(ctx context.Context, out io.Writer, recipients []age.Recipient, now time.Time) (layers []string, err error) {
	list, err := s.Kept(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cluster %s has no state that could be exported", s.Cluster.Name)
	}
	for _, kept := range list {
		layers = append(layers, kept.Layer)
	}
	text, err := json.Marshal(contentsOf{Form: archiveForm, Cluster: s.Cluster.Name, Made: now.UTC(), Layers: layers})
	if err != nil {
		return nil, err
	}
	encrypted, err := age.Encrypt(out, recipients...)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(encrypted)
	add := func(name string, data []byte) error {
		return errors.Join(archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: now}), errOf(archive.Write(data)))
	}
	err = add(contentsFile, text)
	for _, kept := range list {
		err = errors.Join(err, add(nameOf(kept.Layer), kept.Data))
	}
	return layers, errors.Join(err, archive.Close(), encrypted.Close())
}

func errOf(_ int, err error) error { return err }

// ReadArchive opens an archive of this cluster's states. One that is cut, has other files than it says, or is another cluster's is
// refused.
func (s Store) ReadArchive(in io.Reader, identities []age.Identity) ([]Kept, error) {
	list, err := readArchive(in, identities, s.Cluster.Name)
	if err != nil {
		return nil, fmt.Errorf("the archive: %w", err)
	}
	return list, nil
}

func readArchive(in io.Reader, identities []age.Identity, cluster string) ([]Kept, error) {
	clear, err := age.Decrypt(in, identities...)
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(clear)
	text, err := entry(archive, contentsFile)
	if err != nil {
		return nil, err
	}
	var says contentsOf
	if err := json.Unmarshal(text, &says); err != nil {
		return nil, fmt.Errorf("%s: %w", contentsFile, err)
	}
	if says.Form != archiveForm {
		return nil, fmt.Errorf("it has form %d, and this castle reads form %d", says.Form, archiveForm)
	}
	if says.Cluster != cluster {
		return nil, fmt.Errorf("it holds the states of cluster %q, not of %q", says.Cluster, cluster)
	}
	var list []Kept
	for _, layer := range says.Layers {
		if !slices.ContainsFunc(layers.All, func(known layers.Layer) bool { return known.Name == layer }) {
			return nil, fmt.Errorf("it holds the state of a layer %q, which this castle does not have", layer)
		}
		data, err := entry(archive, nameOf(layer))
		if err != nil {
			return nil, err
		}
		kept, err := keep(layer, data)
		if err != nil {
			return nil, err
		}
		list = append(list, kept)
	}
	// The end of age's stream proves that nothing was cut off.
	if rest, err := io.Copy(io.Discard, io.LimitReader(clear, maxState)); err != nil || rest >= maxState {
		return nil, errors.Join(errors.New("it does not end where it says"), err)
	}
	return list, nil
}

// entry reads the next file of an archive, which must have this name.
func entry(archive *tar.Reader, name string) ([]byte, error) {
	header, err := archive.Next()
	if err != nil {
		return nil, fmt.Errorf("%s is missing: %w", name, err)
	}
	if header.Name != name || header.Typeflag != tar.TypeReg || header.Size > maxState {
		return nil, fmt.Errorf("it has %q (%d bytes) where %s should be", header.Name, header.Size, name)
	}
	var data bytes.Buffer
	_, err = io.CopyN(&data, archive, header.Size)
	return data.Bytes(), err
}
