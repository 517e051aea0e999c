package registry

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"time"
)

var errDigestInvalid = &apiError{http.StatusBadRequest, "DIGEST_INVALID", "a digest has the form sha256:<64 hexadecimal digits>"}

// getBlob also answers HEAD and requests for a range. A blob is found under every repository's name, so a base image's
// layers are pushed once for all of them.
func (s *server) getBlob(w http.ResponseWriter, r request) error {
	if !isDigest(r.reference) {
		return errDigestInvalid
	}
	f, err := os.Open(s.store.blobPath(r.reference))
	if errors.Is(err, fs.ErrNotExist) {
		return &apiError{http.StatusNotFound, "BLOB_UNKNOWN", "no blob " + r.reference}
	} else if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", r.reference)
	w.Header().Set("ETag", `"`+r.reference+`"`)
	http.ServeContent(w, r.Request, "", time.Time{}, f)
	return nil
}
