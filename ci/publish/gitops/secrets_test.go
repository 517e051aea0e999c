package gitops

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/base/git"
)

// forms are the shapes in which the token could be left somewhere.
var forms = []string{
	canary,
	url.QueryEscape(canary),
	url.PathEscape(canary),
	base64.StdEncoding.EncodeToString([]byte(git.DefaultUsername + ":" + canary)),
}

func holdsToken(content string) bool {
	for _, form := range forms {
		if strings.Contains(content, form) {
			return true
		}
	}
	return false
}

// searchFolder reports every file of a folder that holds the token.
func searchFolder(t *testing.T, dir string) (searched int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // files come and go while git works
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil
		}
		searched++
		if holdsToken(string(content)) {
			t.Errorf("%s holds the token", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return searched
}

// searchArguments reports every process of this machine with the token in its command line, and counts those of git.
func searchArguments(t *testing.T) (gits int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if holdsToken(string(line)) {
			t.Errorf("a command line holds the token: %s", bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
		if strings.HasPrefix(string(line), "git\x00") {
			gits++
		}
	}
	return gits
}

func TestTheTokenIsNowhereButInGitsEnvironment(t *testing.T) {
	r := newRemote(t, nil)
	environment := filepath.Join(t.TempDir(), "environment")
	r.hook(t, "env > '"+environment+"'\n")

	var mu sync.Mutex
	var files, gits int
	r.requests = func(*http.Request) { // while git waits for the answer
		mu.Lock()
		defer mu.Unlock()
		files += searchFolder(t, r.repository.TempDir)
		gits += searchArguments(t)
	}
	request := publish("3f2a1bc")
	request.SourceRepository = "https://me:" + canary + "@example.org/blog.git"
	mustUpdate(t, r.repository, request)
	if _, err := History(t.Context(), r.repository, manifestPath, blog, 0); err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Error("no file of a clone was searched")
	}
	if _, err := os.Stat("/proc/self/cmdline"); err == nil && gits == 0 {
		t.Error("no git process was seen")
	}

	if seen, err := os.ReadFile(environment); err != nil || len(seen) == 0 {
		t.Errorf("the hook did not run: %v", err)
	} else if holdsToken(string(seen)) {
		t.Errorf("the server's child has the token:\n%s", seen)
	}
	if log := r.log.String(); log == "" || holdsToken(log) {
		t.Errorf("the server's log is empty or holds the token:\n%s", log)
	}
	if history := r.git(t, "log", "--all", "-p", "--format=raw"); holdsToken(history) || !strings.Contains(history, "https://example.org/blog.git") {
		t.Errorf("history:\n%s", history)
	}
	searchFolder(t, r.bare)
	expectEmpty(t, r.repository.TempDir)
}

func TestARemoteThatSaysTheTokenIsNotQuoted(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	r.hook(t, "echo 'error: who is "+canary+" at https://me:"+canary+"@example.org/x.git' >&2\nexit 1\n")
	_, err := Update(t.Context(), r.repository, publish("3f2a1bc"))
	if err == nil {
		t.Fatal("the push went through a hook that refuses")
	}
	expectOneLine(t, err, "[redacted]")
}

func TestARedirectToAnotherHostDoesNotGetTheToken(t *testing.T) {
	t.Parallel()
	r, thief := newRemote(t, nil), newRemote(t, nil)
	var mu sync.Mutex
	asked, given := false, false
	thief.requests = func(request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = true
		given = given || request.Header.Get("Authorization") != ""
	}
	redirect := http.NewServeMux()
	redirect.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		target := strings.TrimSuffix(thief.repository.URL, "/tazlab-k8s.git") + request.URL.RequestURI()
		http.Redirect(w, request, target, http.StatusFound)
	})
	r.repository.URL = serve(t, redirect) + "/tazlab-k8s.git"
	if _, err := Update(t.Context(), r.repository, publish("3f2a1bc")); err == nil {
		t.Error("the update went through")
	}
	mu.Lock()
	defer mu.Unlock()
	if !asked || given {
		t.Errorf("the other host was asked: %v, was given credentials: %v", asked, given)
	}
}
