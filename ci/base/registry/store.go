package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/digest"
)

// Uploads that nobody continued for so long are removed when the registry starts.
const uploadLife = 24 * time.Hour

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func isDigest(text string) bool { return digest.Valid(text) }

// store is the folder. A missing thing is fs.ErrNotExist.
type store struct {
	root string
	busy sync.Map // ids of the uploads that a request is writing to
}

func openStore(root string) (*store, error) {
	s := &store{root: root}
	for _, dir := range []string{"blobs/sha256", "repositories", "uploads"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	uploads, err := os.ReadDir(filepath.Join(root, "uploads"))
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	for _, upload := range uploads {
		info, err := upload.Info()
		if err == nil && time.Since(info.ModTime()) > uploadLife {
			err = os.Remove(s.uploadPath(upload.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	return s, nil
}

func (s *store) blobPath(digest string) string {
	return filepath.Join(s.root, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
}

func (s *store) uploadPath(id string) string { return filepath.Join(s.root, "uploads", id) }

func (s *store) repositoryPath(repository string) string {
	return filepath.Join(s.root, "repositories", filepath.FromSlash(repository))
}

func (s *store) manifestPath(repository, digest string) string {
	return filepath.Join(s.repositoryPath(repository), "_manifests", strings.TrimPrefix(digest, "sha256:"))
}

func (s *store) tagPath(repository, tag string) string {
	return filepath.Join(s.repositoryPath(repository), "_tags", tag)
}

func (s *store) hasBlob(digest string) bool {
	_, err := os.Stat(s.blobPath(digest))
	return err == nil
}

// newUpload makes an empty upload and returns its id.
func (s *store) newUpload() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	id := hex.EncodeToString(random[:])
	f, err := os.OpenFile(s.uploadPath(id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	return id, f.Close()
}

func (s *store) uploadSize(id string) (int64, error) {
	info, err := os.Stat(s.uploadPath(id))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// appendUpload adds what body gives and returns the upload's size. When body breaks off, what had come stays, so that
// a client may ask how far it got and go on from there.
func (s *store) appendUpload(id string, body io.Reader) (int64, error) {
	f, err := os.OpenFile(s.uploadPath(id), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return s.uploadSize(id)
}

// commitUpload makes the upload a blob if its content has the digest, and reports whether it has.
func (s *store) commitUpload(id, digest string) (bool, error) {
	f, err := os.Open(s.uploadPath(id))
	if err != nil {
		return false, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if "sha256:"+hex.EncodeToString(h.Sum(nil)) != digest {
		return false, os.Remove(s.uploadPath(id))
	}
	return true, os.Rename(s.uploadPath(id), s.blobPath(digest))
}

func (s *store) removeUpload(id string) error { return os.Remove(s.uploadPath(id)) }

// holdUpload keeps a second request away from an upload until release is called.
func (s *store) holdUpload(id string) (release func(), ok bool) {
	if _, held := s.busy.LoadOrStore(id, true); held {
		return nil, false
	}
	return func() { s.busy.Delete(id) }, true
}

// resolve turns a tag or digest into a digest.
func (s *store) resolve(repository, reference string) (string, error) {
	if isDigest(reference) {
		return reference, nil
	}
	if !tagForm.MatchString(reference) {
		return "", fs.ErrNotExist
	}
	digest, err := os.ReadFile(s.tagPath(repository, reference))
	return string(digest), err
}

func (s *store) manifest(repository, digest string) ([]byte, error) {
	return os.ReadFile(s.manifestPath(repository, digest))
}

func (s *store) writeManifest(repository, digest string, data []byte) error {
	return s.write(s.manifestPath(repository, digest), data)
}

func (s *store) writeTag(repository, tag, digest string) error {
	return s.write(s.tagPath(repository, tag), []byte(digest))
}

// deleteManifest removes a manifest and the tags that point at it, tags first: a tag never points at nothing.
func (s *store) deleteManifest(repository, digest string) error {
	tags, err := s.tags(repository)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if target, err := s.resolve(repository, tag); err == nil && target == digest {
			if err := s.deleteTag(repository, tag); err != nil {
				return err
			}
		}
	}
	return os.Remove(s.manifestPath(repository, digest))
}

func (s *store) deleteTag(repository, tag string) error { return os.Remove(s.tagPath(repository, tag)) }

// tags returns a repository's tags, sorted; none when it holds only manifests without one.
func (s *store) tags(repository string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(s.repositoryPath(repository), "_manifests")); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(s.repositoryPath(repository), "_tags"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tags := make([]string, 0, len(entries))
	for _, entry := range entries {
		if tagForm.MatchString(entry.Name()) {
			tags = append(tags, entry.Name())
		}
	}
	slices.Sort(tags)
	return tags, nil
}

// repositories returns the names of all repositories, sorted.
func (s *store) repositories() ([]string, error) {
	names := []string{}
	root := filepath.Join(s.root, "repositories")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), "_") {
			return err
		}
		if entry.Name() == "_manifests" {
			name, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(name))
		}
		return fs.SkipDir
	})
	slices.Sort(names)
	return names, err
}

// write puts data at path at once or not at all. The temporary name starts with a dot, which no tag or digest does.
func (s *store) write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
