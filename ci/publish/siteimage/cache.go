package siteimage

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"
)

const (
	// Raise it with every change of the bytes that a group becomes: names, modes, times, levels, the limits of variants.
	layerFormat = "1"
	cacheLife   = 14 * 24 * time.Hour
)

// Assets are mostly compressed already. Pages compress well, and level 6 is where more effort stops paying.
const (
	assetLevel = gzip.BestSpeed
	textLevel  = gzip.DefaultCompression
)

// cache is a folder with two kinds of files: layers/<key>, a record of the layer that a group becomes, and
// blobs/<digest>, a layer's compressed bytes. Files appear under their names by renaming, so builds do not meet.
type cache struct{ dir string }

func openCache(dir string) (*cache, error) {
	c := &cache{dir}
	for _, sub := range []string{"layers", "blobs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("layer cache: %w", err)
		}
	}
	return c, nil
}

// layers returns the layers that the groups become, in order, and works on as many at once as there are CPUs.
func (c *cache) layers(ctx context.Context, groups []group) ([]*layer, error) {
	layers := make([]*layer, len(groups))
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(runtime.GOMAXPROCS(0))
	for i, g := range groups {
		tasks.Go(func() (err error) {
			layers[i], err = c.layer(ctx, g)
			if err != nil {
				return fmt.Errorf("layer %s: %w", g.name, err)
			}
			return nil
		})
	}
	return layers, tasks.Wait()
}

func (c *cache) layer(ctx context.Context, g group) (*layer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := g.key()
	l, err := c.load(key)
	if err != nil {
		return nil, err
	}
	if l == nil {
		if l, err = c.make(ctx, g, key); err != nil {
			return nil, err
		}
	}
	l.report.Name, l.report.Files = g.name, len(g.files)
	l.report.Digest, l.report.DiffID = l.digest.String(), l.diffID.String()
	return l, nil
}

// key is a hash over all that decides a layer's bytes: paths and contents, and what turns these into bytes.
func (g group) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %q\n", layerFormat, toolVersions(), g.level(), g.dir)
	for _, f := range g.files {
		fmt.Fprintf(h, "%q %d %x %t\n", f.path, f.size, f.sum, f.vary)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (g group) level() int {
	if strings.HasPrefix(g.name, "assets") {
		return assetLevel
	}
	return textLevel
}

// toolVersions names what writes and compresses tar files: another version may write other bytes for the same content.
func toolVersions() string {
	versions := runtime.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "github.com/klauspost/compress" {
				versions += " " + dependency.Version
			}
		}
	}
	return versions
}

// record is the content of layers/<key>.
type record struct {
	Digest v1.Hash `json:"digest"`
	DiffID v1.Hash `json:"diffId"`
	Bytes  int64   `json:"bytes"` // of the tar
}

// load returns the layer with the key, or nil where the cache has none or a damaged one. The blob is hashed: a record
// whose blob was cut off by a full disk must not come back as an image that no registry takes.
func (c *cache) load(key string) (*layer, error) {
	data, err := os.ReadFile(c.recordPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, nil
	}
	l := &layer{path: c.blobPath(r.Digest), digest: r.Digest, diffID: r.DiffID}
	// First of all, so that another build's prune leaves them.
	now := time.Now()
	if os.Chtimes(c.recordPath(key), now, now) != nil || os.Chtimes(l.path, now, now) != nil {
		return nil, nil
	}
	blob, err := os.Open(l.path)
	if err != nil {
		return nil, nil
	}
	defer blob.Close()
	digest, size, err := v1.SHA256(blob)
	if err != nil || digest != r.Digest {
		return nil, nil
	}
	l.report = Layer{Bytes: r.Bytes, Compressed: size, Unchanged: true}
	return l, nil
}

// make writes the group's layer and puts it into the cache.
func (c *cache) make(ctx context.Context, g group, key string) (*layer, error) {
	temporary, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return nil, err
	}
	l, err := g.compressTo(ctx, temporary)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		l.path = c.blobPath(l.digest)
		err = os.Rename(temporary.Name(), l.path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(temporary.Name()))
	}
	data, err := json.Marshal(record{l.digest, l.diffID, l.report.Bytes})
	if err != nil {
		return nil, err
	}
	return l, c.write(c.recordPath(key), data)
}

// compressTo streams tar, compression and both hashes into out.
func (g group) compressTo(ctx context.Context, out io.Writer) (*layer, error) {
	compressed := counter{Hash: sha256.New()}
	buffered := bufio.NewWriterSize(io.MultiWriter(out, &compressed), 1<<18)
	zip, err := gzip.NewWriterLevel(buffered, g.level())
	if err != nil {
		return nil, err
	}
	zip.ModTime = noTime
	tarred := counter{Hash: sha256.New()}
	if err := g.writeTar(ctx, io.MultiWriter(zip, &tarred)); err != nil {
		return nil, err
	}
	if err := errors.Join(zip.Close(), buffered.Flush()); err != nil {
		return nil, err
	}
	return &layer{
		digest: compressed.digest(), diffID: tarred.digest(),
		report: Layer{Bytes: tarred.bytes, Compressed: compressed.bytes},
	}, nil
}

// counter hashes and counts what is written to it.
type counter struct {
	hash.Hash
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return c.Hash.Write(p)
}

func (c *counter) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(c.Sum(nil))}
}

func (c *cache) recordPath(key string) string   { return filepath.Join(c.dir, "layers", key) }
func (c *cache) blobPath(digest v1.Hash) string { return filepath.Join(c.dir, "blobs", digest.Hex) }

func (c *cache) write(path string, data []byte) error {
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// prune removes what no build asked for during cacheLife: records, blobs, and what killed builds left.
func (c *cache) prune() error {
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > cacheLife {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // another build was faster
			return nil
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("layer cache: %w", err)
	}
	return nil
}
