package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The specification lets a registry refuse manifests above 4 MiB.
const maxManifest = 4 << 20

// manifest is what images and indexes have in common with each other, as far as the registry looks.
type manifest struct {
	MediaType types.MediaType `json:"mediaType"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
}

// parseManifest fills in the media type where the document leaves it out, as OCI documents may. So a manifest's media
// type can always be told from its bytes, and is not stored.
func parseManifest(data []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, &apiError{http.StatusBadRequest, "MANIFEST_INVALID", "the manifest is not JSON: " + err.Error()}
	}
	if m.MediaType == "" {
		m.MediaType = types.OCIManifestSchema1
		if m.Manifests != nil {
			m.MediaType = types.OCIImageIndex
		}
	}
	if !m.MediaType.IsImage() && !m.MediaType.IsIndex() {
		return m, &apiError{http.StatusBadRequest, "MANIFEST_INVALID", "unknown media type " + string(m.MediaType)}
	}
	return m, nil
}

func (s *server) getManifest(w http.ResponseWriter, r request) error {
	digest, err := s.store.resolve(r.repository, r.reference)
	var data []byte
	if err == nil {
		data, err = s.store.manifest(r.repository, digest)
	}
	if err != nil {
		return manifestError(err, r)
	}
	m, err := parseManifest(data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(m.MediaType))
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("ETag", `"`+digest+`"`)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = w.Write(data) // a client that went away is no failure of ours
	return nil
}

// putManifest stores a manifest whose blobs and child manifests are all there, and tags it where a tag was named.
func (s *server) putManifest(w http.ResponseWriter, r request) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &apiError{http.StatusRequestEntityTooLarge, "SIZE_INVALID", "a manifest may have 4 MiB"}
	} else if err != nil {
		return err
	}
	m, err := parseManifest(data)
	if err != nil {
		return err
	}
	if declared, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || declared != string(m.MediaType) {
		return &apiError{http.StatusBadRequest, "MANIFEST_INVALID", "Content-Type is not the manifest's media type " + string(m.MediaType)}
	}
	if err := s.checkComplete(r.repository, m); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	switch {
	case tagForm.MatchString(r.reference):
		if err := s.store.writeManifest(r.repository, digest, data); err != nil {
			return err
		}
		if err := s.store.writeTag(r.repository, r.reference, digest); err != nil {
			return err
		}
	case r.reference == digest:
		if err := s.store.writeManifest(r.repository, digest, data); err != nil {
			return err
		}
	case isDigest(r.reference):
		return &apiError{http.StatusBadRequest, "DIGEST_INVALID", "the manifest does not have the digest " + r.reference}
	default:
		return &apiError{http.StatusBadRequest, "TAG_INVALID", "neither a tag nor a digest: " + r.reference}
	}
	w.Header().Set("Location", "/v2/"+r.repository+"/manifests/"+digest)
	w.Header().Set("Docker-Content-Digest", digest)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// checkComplete makes sure that whoever pulls by this manifest finds all of it.
func (s *server) checkComplete(repository string, m manifest) error {
	blobs := m.Layers
	if m.Config != nil {
		blobs = append([]v1.Descriptor{*m.Config}, blobs...)
	}
	for _, blob := range blobs {
		if blob.MediaType.IsDistributable() && !s.store.hasBlob(blob.Digest.String()) {
			return &apiError{http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN", "push this blob before the manifest: " + blob.Digest.String()}
		}
	}
	for _, child := range m.Manifests {
		if _, err := s.store.manifest(repository, child.Digest.String()); errors.Is(err, fs.ErrNotExist) {
			return &apiError{http.StatusBadRequest, "MANIFEST_UNKNOWN", "push this manifest before the index: " + child.Digest.String()}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// deleteManifest removes a tag, or a manifest with all its tags. Blobs stay.
func (s *server) deleteManifest(w http.ResponseWriter, r request) error {
	var err error
	switch {
	case isDigest(r.reference):
		err = s.store.deleteManifest(r.repository, r.reference)
	case tagForm.MatchString(r.reference):
		err = s.store.deleteTag(r.repository, r.reference)
	default:
		err = fs.ErrNotExist
	}
	if err != nil {
		return manifestError(err, r)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func manifestError(err error, r request) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &apiError{http.StatusNotFound, "MANIFEST_UNKNOWN", "no manifest " + r.reference + " in " + r.repository}
	}
	return err
}
