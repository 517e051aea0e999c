package images

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"
)

// LocalFile is the file beside images.yaml that the Dagger module reads after it, where it is there. Git ignores it: it
// is about the mirror of one machine.
const LocalFile = "images.local.yaml"

const localHead = `# What this machine's mirror holds in place of images of images.yaml: stand-ins, or copies with fewer platforms. They have
# digests of their own, and the module pulls by them. A row counts as long as images.yaml says what its "for" says.
# Written by castle setup, castle engine up, castle mirror build and castle mirror verify --pin. Remove this file when the
# engine pulls from elsewhere.
`

// Local is what an engine gets from a mirror in place of the list's images, by their keys.
type Local map[string]LocalImage

// LocalImage stands for one image.
type LocalImage struct {
	For    string `yaml:"for"`    // Pinned of the image at the time of writing
	Digest string `yaml:"digest"` // "sha256:…", of what the mirror holds
}

// WriteBeside writes the file beside the list at the path, or removes it where there is nothing to say. One that says
// the same already is left as it is.
func (l Local) WriteBeside(list string) error {
	file := filepath.Join(filepath.Dir(list), LocalFile)
	if len(l) == 0 {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	rows, err := yaml.Marshal(l)
	if err != nil {
		return err
	}
	text := append([]byte(localHead), rows...)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, text) {
		return nil
	}
	// A module that is called meanwhile reads the old file or the new one, never half of one.
	return renameio.WriteFile(file, text, 0o644)
}
