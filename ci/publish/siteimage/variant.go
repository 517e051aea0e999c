package siteimage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// A variant is a file's content in gzip's format beside it, "style.css.gz", which nginx sends instead where the client
// takes it. The limits: what fits into one packet anyway gets none, nor what compression saves next to nothing on, nor
// what would have to be held in memory by tens of megabytes.
const (
	variantFrom   = 512      // bytes
	variantTo     = 64 << 20 // bytes
	variantSaving = 64       // bytes
)

// noTime is what gzip's header calls "no time". The library would write the zero time.Time as a date in 2042.
var noTime = time.Unix(0, 0)

var compressible = map[string]bool{
	".html": true, ".htm": true, ".xml": true, ".json": true, ".txt": true, ".css": true, ".js": true, ".mjs": true,
	".svg": true, ".webmanifest": true, ".map": true, ".ico": true, ".ttf": true, ".otf": true, ".wasm": true,
	".md": true, ".csv": true, ".ics": true, ".bmp": true,
}

var bestCompressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant of the same package
	}
	return w
}}

// wantsVariant looks at name and size only.
func (f *file) wantsVariant() bool {
	return compressible[f.extension()] && f.size >= variantFrom && f.size <= variantTo
}

// compress returns content in gzip's format, with no time and no name in the header, or nil where it saves too little.
func compress(content io.Reader, size int64) ([]byte, error) {
	w := bestCompressors.Get().(*gzip.Writer)
	defer bestCompressors.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	w.ModTime = noTime
	_, err := io.Copy(w, content)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	if int64(out.Len())+variantSaving > size {
		return nil, nil
	}
	return out.Bytes(), nil
}

// ownVariants returns the paths of the files that the site brings a variant of, and makes sure that these hold the same
// content, since nginx would send it in the file's place.
func (s *site) ownVariants() (map[string]bool, error) {
	byPath := make(map[string]*file, len(s.files))
	for i := range s.files {
		byPath[s.files[i].path] = &s.files[i]
	}
	own := map[string]bool{}
	for name, variant := range byPath {
		plain, ok := byPath[strings.TrimSuffix(name, ".gz")]
		if !ok || !strings.HasSuffix(name, ".gz") {
			continue
		}
		if err := holds(variant, plain); err != nil {
			return nil, fmt.Errorf("%s stands beside %s but is not its compressed form (%w); nginx would send it instead: rename or remove it", name, plain.path, err)
		}
		own[plain.path] = true
	}
	return own, nil
}

func holds(variant, plain *file) error {
	r, err := variant.open()
	if err != nil {
		return err
	}
	defer r.Close()
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	content := file{path: variant.path, open: func() (io.ReadCloser, error) { return unpacked, nil }}
	if err := content.hash(); err != nil {
		return err
	}
	if content.sum != plain.sum {
		return errors.New("its content differs")
	}
	return nil
}
