package registry

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log"
	"net/http"
	"regexp"
	"slices"
)

// Options describe a registry.
type Options struct {
	Root     string      // folder that holds everything; made when missing
	Username string      // with Password: basic authentication on every request; both empty: none
	Password string      //
	ReadOnly bool        // refuse whatever is not GET or HEAD
	ErrorLog *log.Logger // where failures of the disk are written; nil drops them
}

// New returns a handler of the OCI distribution API (/v2/…) over the folder, to be mounted at the root of a server.
// Not served: deletion of blobs, the referrers API.
func New(o Options) (http.Handler, error) {
	if o.Root == "" {
		return nil, errors.New("registry: Root is empty; name the folder that holds the registry")
	}
	if (o.Username == "") != (o.Password == "") {
		return nil, errors.New("registry: Username and Password go together; one of them is empty")
	}
	s, err := openStore(o.Root)
	if err != nil {
		return nil, err
	}
	r := &server{store: s, errorLog: o.ErrorLog}
	r.routes = []route{
		{regexp.MustCompile(`^/v2/?$`), methods{http.MethodGet: r.ping}},
		{regexp.MustCompile(`^/v2/_catalog$`), methods{http.MethodGet: r.catalog}},
		{regexp.MustCompile(`^/v2/(` + nameForm + `)/tags/list$`), methods{http.MethodGet: r.listTags}},
		{regexp.MustCompile(`^/v2/(` + nameForm + `)/manifests/([^/]+)$`), methods{
			http.MethodGet: r.getManifest, http.MethodPut: r.putManifest, http.MethodDelete: r.deleteManifest,
		}},
		{regexp.MustCompile(`^/v2/(` + nameForm + `)/blobs/uploads/?$`), methods{http.MethodPost: r.startUpload}},
		{regexp.MustCompile(`^/v2/(` + nameForm + `)/blobs/uploads/([0-9a-f]{32})$`), methods{
			http.MethodGet: r.uploadStatus, http.MethodPatch: r.continueUpload,
			http.MethodPut: r.finishUpload, http.MethodDelete: r.cancelUpload,
		}},
		{regexp.MustCompile(`^/v2/(` + nameForm + `)/blobs/([^/]+)$`), methods{http.MethodGet: r.getBlob}},
	}
	var h http.Handler = r
	if o.ReadOnly {
		h = readOnly(h)
	}
	if o.Username != "" {
		h = basicAuth(h, o.Username, o.Password)
	}
	return h, nil
}

// The grammar of repository names in the distribution specification. No component starts with "_" or ".", so a name
// can neither leave the folder nor meet the folders of the store's own.
const nameForm = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*`

// request is an HTTP request with what its path names: the repository and, by route, a tag, digest or upload.
type request struct {
	*http.Request
	repository string
	reference  string
}

type methods map[string]func(http.ResponseWriter, request) error

type route struct {
	path    *regexp.Regexp
	methods methods // HEAD is answered by GET's
}

type server struct {
	store    *store
	errorLog *log.Logger
	routes   []route
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	if err := s.serve(w, r); err != nil {
		s.fail(w, r, err)
	}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) error {
	for _, route := range s.routes {
		parts := route.path.FindStringSubmatch(r.URL.Path)
		if parts == nil {
			continue
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		handle, ok := route.methods[method]
		if !ok {
			return &apiError{http.StatusMethodNotAllowed, "UNSUPPORTED", r.Method + " is not supported here"}
		}
		parts = slices.Concat(parts, []string{"", ""})
		return handle(w, request{r, parts[1], parts[2]})
	}
	return &apiError{http.StatusNotFound, "NAME_INVALID", "no such path, or a repository name that is not lower-case"}
}

func (s *server) ping(w http.ResponseWriter, _ request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte("{}"))
	return err
}

func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			(&apiError{http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry is read-only"}).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func basicAuth(next http.Handler, username, password string) http.Handler {
	// Hashed first, because a comparison of unequal lengths ends early and so tells the length.
	wantUser, wantPassword := sha256.Sum256([]byte(username)), sha256.Sum256([]byte(password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		gotUser, gotPassword := sha256.Sum256([]byte(u)), sha256.Sum256([]byte(p))
		if subtle.ConstantTimeCompare(gotUser[:], wantUser[:])&subtle.ConstantTimeCompare(gotPassword[:], wantPassword[:]) != 1 {
			unauthorized(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	(&apiError{http.StatusUnauthorized, "UNAUTHORIZED", "authentication required"}).write(w)
}
