package gitserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Options say what is served to whom.
type Options struct {
	// Root is the folder that holds the bare repositories; Root/a/b.git is served as /a/b.git.
	Root string
	// Token is the password that may read and push, with any user name. Required.
	Token string
	// ReadToken is a password that may only read: its pushes are answered 403. Empty means there is none.
	ReadToken string
	// AnonymousRead lets everybody read; pushes still need the token.
	AnonymousRead bool
	// Log gets one line per request (method, path, status, duration) and what git says on standard error; nil means none.
	Log *log.Logger
}

// server is the handler that New returns.
type server struct {
	options Options
	root    string // absolute
	backend string // the git-http-backend program
	logger  *log.Logger
}

// access is what a request's credentials allow.
type access int

const (
	accessNone access = iota
	accessRead
	accessWrite
)

// New returns a handler for the options. It fails where the folder is not there, no token is given or git has no
// http-backend.
func New(options Options) (http.Handler, error) {
	if options.Token == "" {
		return nil, errors.New("the Git server needs a token: an open one would let everybody push")
	}
	root, err := filepath.Abs(options.Root)
	if err != nil {
		return nil, fmt.Errorf("folder of the Git server: %w", err)
	}
	if info, err := os.Stat(root); err != nil {
		return nil, fmt.Errorf("folder of the Git server: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("folder of the Git server: %s is not a folder", root)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	execPath, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("git --exec-path: %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(execPath)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return nil, fmt.Errorf("git is installed without http-backend: %w", err)
	}
	logger := options.Log
	if logger == nil {
		logger = log.New(io.Discard, "", 0)
	}
	return &server{options: options, root: root, backend: backend, logger: logger}, nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	recorded := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	s.serve(recorded, r)
	s.logger.Printf("%s %s %d %s", r.Method, r.URL.Path, recorded.status, time.Since(start).Round(time.Millisecond))
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != path.Clean(r.URL.Path) {
		http.Error(w, "path is not clean", http.StatusBadRequest)
		return
	}
	granted := s.access(r)
	if granted == accessNone {
		w.Header().Set("WWW-Authenticate", `Basic realm="git", charset="UTF-8"`)
		http.Error(w, "Invalid username or token.", http.StatusUnauthorized)
		return
	}
	if isPush(r) && granted < accessWrite {
		if s.isAnonymous(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git", charset="UTF-8"`)
			http.Error(w, "Pushing needs a token.", http.StatusUnauthorized)
			return
		}
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
		return
	}
	// net/http/cgi passes every header on as HTTP_…, and hooks would inherit this one.
	r.Header.Del("Authorization")

	if err := spool(r); err != nil {
		http.Error(w, "request body could not be read", http.StatusBadRequest)
		s.logger.Printf("%s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	defer func() { _ = r.Body.Close() }()

	environment := []string{
		"GIT_PROJECT_ROOT=" + s.root,
		"GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		// The repositories are the ones the owner of this server pointed it at, whoever owns the files.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"PATH=" + os.Getenv("PATH"),
		"LC_ALL=C",
	}
	if granted == accessWrite {
		environment = append(environment, "REMOTE_USER=git") // what makes http-backend accept pushes
	}
	backend := &cgi.Handler{
		Path:   s.backend,
		Dir:    s.root,
		Env:    environment,
		Logger: s.logger,
		Stderr: s.logger.Writer(),
	}
	backend.ServeHTTP(w, r)
}

// access looks at the password only; every user name will do.
func (s *server) access(r *http.Request) access {
	_, password, given := r.BasicAuth()
	switch {
	case given && sameSecret(password, s.options.Token):
		return accessWrite
	case given && s.options.ReadToken != "" && sameSecret(password, s.options.ReadToken):
		return accessRead
	case s.isAnonymous(r) && s.options.AnonymousRead:
		return accessRead
	}
	return accessNone
}

func (s *server) isAnonymous(r *http.Request) bool { return r.Header.Get("Authorization") == "" }

// sameSecret compares in a time that depends on neither content nor length.
func sameSecret(a, b string) bool {
	hashA, hashB := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(hashA[:], hashB[:]) == 1
}

// isPush tells both requests of a push from those of a fetch.
func isPush(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
}

// spool puts a body of unknown length into an unlinked temporary file: CGI needs the length beforehand, and git sends packs
// of more than a megabyte chunked.
func spool(r *http.Request) error {
	if r.ContentLength >= 0 || r.Body == nil {
		return nil
	}
	file, err := os.CreateTemp("", "gitserver-body-")
	if err != nil {
		return err
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(err, file.Close())
	}
	length, err := io.Copy(file, r.Body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r.Body, r.ContentLength, r.TransferEncoding = file, length, nil
	return nil
}

// statusRecorder remembers the status for the log.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
