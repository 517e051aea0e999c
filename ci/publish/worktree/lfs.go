package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A Git LFS pointer is a text of at most this size that begins with its version. Source: the specification in
// github.com/git-lfs/git-lfs, docs/spec.md.
const (
	lfsPointerSize = 1024
	lfsVersion     = "version https://git-lfs.github.com/spec/v1\n"
)

// pointer is what a commit holds of a file that is kept in Git LFS.
type pointer struct {
	oid  string // sha256 of the content, in hexadecimal
	size int64  // of the content, in bytes
}

var lfsFields = regexp.MustCompile(`^oid sha256:([0-9a-f]{64})\nsize ([0-9]+)\n$`)

// parsePointer reads a pointer. One without an oid is one that only an extension of Git LFS could resolve, or a damaged one.
func parsePointer(content string) (found pointer, isPointer bool) {
	fields, isPointer := strings.CutPrefix(content, lfsVersion)
	if match := lfsFields.FindStringSubmatch(fields); isPointer && match != nil {
		size, err := strconv.ParseInt(match[2], 10, 64)
		if err == nil {
			return pointer{match[1], size}, true
		}
	}
	return pointer{}, isPointer
}

// resolvePointers finds the content of each entry that is a pointer, either among the objects that Git LFS keeps in the clone or
// checked out in the tree at top, and lists those whose content is not there. It reads the content, so that what an entry names
// is what the commit means.
func resolvePointers(ctx context.Context, top string, entries []entry) ([]Problem, error) {
	small, at := []entry{}, []int{}
	for i, entry := range entries {
		if entry.kind == "blob" && entry.mode != modeSymlink && entry.size > int64(len(lfsVersion)) && entry.size <= lfsPointerSize {
			small, at = append(small, entry), append(at, i)
		}
	}
	var problems []Problem
	storages := map[string]string{}
	read := -1
	err := readBlobs(ctx, small, func(entry entry, content []byte) error {
		read++
		wanted, isPointer := parsePointer(string(content))
		if !isPointer {
			return nil
		}
		resolved := &entries[at[read]]
		resolved.pointer = wanted
		storage, known := storages[entry.repository.dir]
		if !known {
			var err error
			if storage, err = entry.repository.lfsStorage(ctx); err != nil {
				return err
			}
			storages[entry.repository.dir] = storage
		}
		var err error
		resolved.content, err = wanted.find(storage, filepath.Join(top, filepath.FromSlash(entry.source)))
		if err == nil && resolved.content == "" {
			problems = append(problems, Problem{
				Path: entry.source,
				What: "is kept in Git LFS, and its content is not in this clone",
				Fix:  "run git lfs pull, or set lfs: true in actions/checkout",
			})
		}
		return err
	})
	return problems, err
}

// lfsStorage is where Git LFS keeps content. Source: lfs.storage in git-lfs-config(5).
func (r repository) lfsStorage(ctx context.Context) (string, error) {
	shared, err := r.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	storage, err := r.line(ctx, "config", "--type=path", "--get", "lfs.storage")
	if err != nil && !exitedWith(err, 1) {
		return "", err
	}
	switch {
	case storage == "":
		return filepath.Join(shared, "lfs"), nil
	case filepath.IsAbs(storage):
		return storage, nil
	default:
		return filepath.Join(shared, storage), nil
	}
}

// find returns the file that holds the content, empty where none does.
func (p pointer) find(storage, checkedOut string) (string, error) {
	if p.oid == "" {
		return "", nil
	}
	for _, name := range []string{filepath.Join(storage, "objects", p.oid[:2], p.oid[2:4], p.oid), checkedOut} {
		err := p.copy(io.Discard, name)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOtherContent) {
			return "", err
		}
	}
	return "", nil
}

var errOtherContent = errors.New("it does not have the content that its Git LFS pointer names")

// copy writes a file's content, or ends in errOtherContent if that is not the pointer's. A file of another size is not read.
func (p pointer) copy(to io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != p.size {
		return errors.Join(err, fmt.Errorf("%s: %w", name, errOtherContent))
	}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(hash, to), file); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != p.oid {
		return fmt.Errorf("%s: %w", name, errOtherContent)
	}
	return nil
}

// matchesPointer reports whether a file has the content its committed pointer names.
func (r repository) matchesPointer(ctx context.Context, path string) (bool, error) {
	content, err := r.git.Run(ctx, "cat-file", "blob", "HEAD:"+path)
	if err != nil {
		return false, err
	}
	wanted, isPointer := parsePointer(content)
	if !isPointer {
		return false, nil
	}
	err = wanted.copy(io.Discard, filepath.Join(r.dir, filepath.FromSlash(path)))
	if errors.Is(err, errOtherContent) {
		return false, nil
	}
	return err == nil, err
}
