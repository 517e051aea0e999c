package mirror

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/gzip"

	"tazlab.net/castle/ci/setup/debian"
)

// writeGzip writes path whole or not at all. The compressor is a library at a version of ours, not the Go release's, so
// that another toolchain compresses to the same digest.
func writeGzip(path string, fill func(io.Writer) error) error {
	partial, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer partial.Cleanup()
	compressed := gzip.NewWriter(partial)
	if err := errors.Join(fill(compressed), compressed.Close()); err != nil {
		return err
	}
	return partial.CloseAtomicallyReplace()
}

// openLayer reads a layer that writeGzip wrote. An empty file, such as the end of the power can leave, would else be taken for an
// empty archive that is not compressed.
func openLayer(path string) (v1.Layer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s: %w", path, io.ErrUnexpectedEOF)
	}
	return tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
}

// layerWriter adds entries to a layer: owned by root, with debian.Epoch as their time.
type layerWriter struct{ tar *tar.Writer }

func writeLayer(path string, fill func(layerWriter) error) error {
	return writeGzip(path, func(w io.Writer) error {
		layer := layerWriter{tar.NewWriter(w)}
		if err := fill(layer); err != nil {
			return err
		}
		return layer.tar.Close()
	})
}

func (l layerWriter) header(h tar.Header) error {
	h.ModTime = time.Unix(debian.Epoch, 0)
	return l.tar.WriteHeader(&h)
}

// folder adds a folder; mode has the sticky bit as the file system does, 0o1777.
func (l layerWriter) folder(name string, mode int64) error {
	return l.header(tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimSuffix(name, "/") + "/", Mode: mode})
}

// link adds a symbolic link.
func (l layerWriter) link(name, target string) error {
	return l.header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
}

// file adds the content of the host's file source.
func (l layerWriter) file(name string, mode int64, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := l.header(tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode}); err != nil {
		return err
	}
	if _, err := io.Copy(l.tar, file); err != nil {
		return fmt.Errorf("copy %s: %w", source, err)
	}
	return nil
}

// tree adds the host's folder source and all below it, in lexical order, as name. For each file, by its path below
// source ("bin/go"), place says under which such path and with which mode it goes in; no path leaves it out. There may be
// files and folders only.
func (l layerWriter) tree(name, source string, place func(file string) (string, int64)) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		switch {
		case entry.IsDir():
			return l.folder(pathpkg.Join(name, below), 0o755)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is neither file nor folder", path)
		}
		if at, mode := place(below); at != "" {
			return l.file(pathpkg.Join(name, at), mode, path)
		}
		return nil
	})
}
