package ocilayout

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// archive knows where in a tar file each regular file's content stands, so that blobs are read in place, not unpacked.
type archive struct {
	path    string
	entries map[string]span
}

type span struct{ offset, size int64 }

func openArchive(path string) (*archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &archive{path, map[string]span{}}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		} else if err != nil {
			return nil, fmt.Errorf("not a tar file, or damaged: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		// The reader takes no more from the file than the header, so the content starts where the file now stands.
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		a.entries[clean(header.Name)] = span{offset, header.Size}
	}
}

func clean(name string) string { return path.Clean("/" + name)[1:] }

func (a *archive) has(name string) bool { _, ok := a.entries[name]; return ok }

func (a *archive) open(name string) (io.ReadCloser, error) {
	where, ok := a.entries[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing: not an OCI layout, or not all of it", name)
	}
	f, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, where.offset, where.size), f}, nil
}
