package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A Git LFS pointer is a text of at most this size that begins with its version. Source: the specification in
// github.com/git-lfs/git-lfs, docs/spec.md.
const lfsPointerSize = 1024

var lfsVersion = []byte("version https://git-lfs.github.com/spec/v1\n")

// lfsPointers lists the files whose content is not in the commit.
func lfsPointers(ctx context.Context, entries []entry) ([]Problem, error) {
	var small []entry
	for _, entry := range entries {
		if entry.kind == "blob" && entry.mode != modeSymlink && entry.size > int64(len(lfsVersion)) && entry.size <= lfsPointerSize {
			small = append(small, entry)
		}
	}
	var problems []Problem
	err := readBlobs(ctx, small, func(entry entry, content []byte) error {
		if bytes.HasPrefix(content, lfsVersion) {
			problems = append(problems, Problem{
				Path: entry.source,
				What: "is kept in Git LFS, so that the commit holds a pointer instead of the content",
				Fix:  "keep it in Git itself (git lfs migrate export --include=" + entry.source + ")",
			})
		}
		return nil
	})
	return problems, err
}

// matchesPointer reports whether a file has the content its committed pointer names.
func (r repository) matchesPointer(ctx context.Context, path string) (bool, error) {
	pointer, err := r.git.Run(ctx, "cat-file", "blob", "HEAD:"+path)
	if err != nil || !strings.HasPrefix(pointer, string(lfsVersion)) {
		return false, err
	}
	file, err := os.Open(filepath.Join(r.dir, filepath.FromSlash(path)))
	if err != nil {
		return false, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return false, err
	}
	return strings.Contains(pointer, "\noid sha256:"+hex.EncodeToString(hash.Sum(nil))+"\n"), nil
}
