package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

var errUploadUnknown = &apiError{http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "no such upload; start it anew"}

// startUpload answers POST: a mount of a blob that is there, a whole blob in one request, or a new upload.
func (s *server) startUpload(w http.ResponseWriter, r request) error {
	if mount := r.URL.Query().Get("mount"); isDigest(mount) && s.store.hasBlob(mount) {
		created(w, r, mount)
		return nil
	}
	id, err := s.store.newUpload()
	if err != nil {
		return err
	}
	r.reference = id
	if r.URL.Query().Has("digest") {
		return s.finishUpload(w, r)
	}
	accepted(w, r, 0, http.StatusAccepted)
	return nil
}

func (s *server) uploadStatus(w http.ResponseWriter, r request) error {
	size, err := s.store.uploadSize(r.reference)
	if err != nil {
		return uploadError(err)
	}
	accepted(w, r, size, http.StatusNoContent)
	return nil
}

// continueUpload answers PATCH, with a Content-Range (a chunk, which must start where the upload ends) or without one.
func (s *server) continueUpload(w http.ResponseWriter, r request) error {
	release, ok := s.store.holdUpload(r.reference)
	if !ok {
		return errUploadBusy
	}
	defer release()
	if err := s.checkRange(r); err != nil {
		return err
	}
	size, err := s.store.appendUpload(r.reference, r.Body)
	if err != nil {
		return uploadError(err)
	}
	accepted(w, r, size, http.StatusAccepted)
	return nil
}

// finishUpload answers PUT: the rest of the content, if any, and the digest of the whole.
func (s *server) finishUpload(w http.ResponseWriter, r request) error {
	digest := r.URL.Query().Get("digest")
	if !isDigest(digest) {
		return errDigestInvalid
	}
	release, ok := s.store.holdUpload(r.reference)
	if !ok {
		return errUploadBusy
	}
	defer release()
	if err := s.checkRange(r); err != nil {
		return err
	}
	if _, err := s.store.appendUpload(r.reference, r.Body); err != nil {
		return uploadError(err)
	}
	same, err := s.store.commitUpload(r.reference, digest)
	if err != nil {
		return uploadError(err)
	}
	if !same {
		return &apiError{http.StatusBadRequest, "DIGEST_INVALID", "the content does not have the digest " + digest}
	}
	created(w, r, digest)
	return nil
}

func (s *server) cancelUpload(w http.ResponseWriter, r request) error {
	release, ok := s.store.holdUpload(r.reference)
	if !ok {
		return errUploadBusy
	}
	defer release()
	if err := s.store.removeUpload(r.reference); err != nil {
		return uploadError(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

var errUploadBusy = &apiError{http.StatusConflict, "BLOB_UPLOAD_INVALID", "another request is writing to this upload"}

func uploadError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errUploadUnknown
	}
	return err
}

// checkRange refuses a chunk that does not start where the upload ends.
func (s *server) checkRange(r request) error {
	header := strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes ")
	if header == "" {
		return nil
	}
	size, err := s.store.uploadSize(r.reference)
	if err != nil {
		return uploadError(err)
	}
	var start, end int64
	if _, err := fmt.Sscanf(header, "%d-%d", &start, &end); err != nil || start != size || end < start {
		return &apiError{http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", fmt.Sprintf("the next chunk starts at %d", size)}
	}
	return nil
}

func accepted(w http.ResponseWriter, r request, size int64, status int) {
	w.Header().Set("Location", "/v2/"+r.repository+"/blobs/uploads/"+r.reference)
	w.Header().Set("Docker-Upload-UUID", r.reference)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	w.WriteHeader(status)
}

func created(w http.ResponseWriter, r request, digest string) {
	w.Header().Set("Location", "/v2/"+r.repository+"/blobs/"+digest)
	w.Header().Set("Docker-Content-Digest", digest)
	w.WriteHeader(http.StatusCreated)
}
