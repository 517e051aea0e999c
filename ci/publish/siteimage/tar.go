package siteimage

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Files above this size are copied from disk when their turn comes; smaller ones are read ahead.
const readAhead = 1 << 20

// writeTar writes the group as a tar file: its folders, files and the files' variants, sorted by path. Reading and
// compression of variants run ahead on all CPUs; the order of the output does not depend on them.
func (g group) writeTar(ctx context.Context, out io.Writer) error {
	tasks, ctx := errgroup.WithContext(ctx)
	cpus := runtime.GOMAXPROCS(0)
	queue := make(chan chan prepared, 2*cpus)
	tasks.Go(func() error {
		defer close(queue)
		workers, ctx := errgroup.WithContext(ctx)
		workers.SetLimit(cpus)
		for _, f := range g.files {
			slot := make(chan prepared, 1)
			select {
			case queue <- slot:
			case <-ctx.Done():
				return workers.Wait()
			}
			workers.Go(func() error {
				p, err := f.prepare()
				if err == nil {
					slot <- p
				}
				return err
			})
		}
		return workers.Wait()
	})
	tasks.Go(func() error {
		w := &tarWriter{tar.NewWriter(out), map[string]bool{}}
		for slot := range queue {
			select {
			case p := <-slot:
				if err := w.file(g.dir, p); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return w.Close()
	})
	return tasks.Wait()
}

// prepared is a file ready to be written: content is nil where the file is copied from disk.
type prepared struct {
	file
	content []byte
	variant []byte // nil where there is none
}

func (f file) prepare() (prepared, error) {
	p := prepared{file: f}
	wants := f.vary && f.wantsVariant()
	if f.size > readAhead && !wants {
		return p, nil
	}
	r, err := f.openChecked()
	if err != nil {
		return p, err
	}
	defer r.Close()
	var content io.Reader = r
	if f.size <= readAhead {
		if p.content, err = io.ReadAll(r); err != nil {
			return p, err
		}
		content = bytes.NewReader(p.content)
	}
	if wants {
		p.variant, err = compress(content, f.size)
	}
	return p, err
}

// openChecked opens the file for a reader that fails at the end when the content is not what was hashed: the cache
// would keep the wrong bytes under the right name.
func (f file) openChecked() (io.ReadCloser, error) {
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.TeeReader(r, h), readerFunc(func([]byte) (int, error) {
		if [sha256.Size]byte(h.Sum(nil)) != f.sum {
			return 0, fmt.Errorf("%s changed while the image was built; build again", f.path)
		}
		return 0, io.EOF
	})), r}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// tarWriter writes entries that carry nothing of the machine: owner 0:0, fixed modes, fixed times.
type tarWriter struct {
	*tar.Writer
	folders map[string]bool
}

func (w *tarWriter) file(dir string, p prepared) error {
	name := path.Join(dir, p.path)
	if err := w.parents(name); err != nil {
		return err
	}
	var content io.Reader = bytes.NewReader(p.content)
	if p.content == nil && p.size > 0 {
		r, err := p.openChecked()
		if err != nil {
			return err
		}
		defer r.Close()
		content = r
	}
	if err := w.entry(name, p.size, p.sum, content); err != nil {
		return err
	}
	if p.variant == nil {
		return nil
	}
	return w.entry(name+".gz", int64(len(p.variant)), sha256.Sum256(p.variant), bytes.NewReader(p.variant))
}

// parents writes the folders above name that this layer has not yet, so that their modes do not depend on what unpacks
// the layer.
func (w *tarWriter) parents(name string) error {
	var missing []string
	for dir := path.Dir(name); dir != "." && !w.folders[dir]; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		w.folders[dir] = true
		if err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (w *tarWriter) entry(name string, size int64, sum [sha256.Size]byte, content io.Reader) error {
	if strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q: a file's name cannot hold a zero byte", name)
	}
	if err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: contentTime(sum), Format: tar.FormatPAX,
	}); err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// contentTime is a file's modification time: no time at all, but 31 bits of the content's hash.
//
// Why: nginx makes an ETag of modification time and size. With one constant time, a file that changed and kept its size
// keeps its ETag, and browsers keep the old page for ever. With the real time, every build would be another layer. So
// the time is made to change with the content, and only with it. It never reaches a client as a date: the
// configuration removes Last-Modified. 31 bits, because file systems with 32-bit times clamp what is later than 2038.
func contentTime(sum [sha256.Size]byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(sum[:4])>>1), 0)
}
