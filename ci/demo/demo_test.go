package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAPageIsFetchedAsSoonAsTheServerAnswers(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			panic(http.ErrAbortHandler) // as a port does whose server is not up yet
		}
		_, _ = io.WriteString(w, "<title>Blog</title>")
	}))
	defer server.Close()
	response, body, err := fetch(t.Context(), server.URL, make(chan error, 1))
	if err != nil || response.StatusCode != http.StatusOK || string(body) != "<title>Blog</title>" {
		t.Errorf("%v, %q, %v", response, body, err)
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestAServerThatEndedIsWaitedForNoLonger(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	exited := make(chan error, 1)
	ended := errors.New("exit status 1")
	exited <- ended
	_, _, err := fetch(t.Context(), server.URL, exited)
	if err == nil || !strings.Contains(err.Error(), "the service ended: exit status 1") {
		t.Errorf("got %v", err)
	}
	select { // for whoever waits for the process itself
	case again := <-exited:
		if !errors.Is(again, ended) {
			t.Errorf("got %v", again)
		}
	default:
		t.Error("the process's end was swallowed")
	}
}

func TestFetchingEndsWithItsContext(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := fetch(ctx, server.URL, make(chan error, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramIsLookedUpInTheGivenPathAndNotInOurs(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Setenv("PATH", first)
	program := func(dir string, mode os.FileMode) string {
		name := filepath.Join(dir, "tool")
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	path := "PATH=" + first + string(os.PathListSeparator) + second

	if _, err := lookPathIn([]string{path}, "tool"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	want := program(second, 0o755)
	if got, err := lookPathIn([]string{path}, "tool"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(first, "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := lookPathIn([]string{path}, "tool"); got != want {
		t.Errorf("a folder was taken for a program: %q", got)
	}
	if err := os.Remove(filepath.Join(first, "tool")); err != nil {
		t.Fatal(err)
	}
	ours := program(first, 0o644)
	if got, _ := lookPathIn([]string{path}, "tool"); got != want {
		t.Errorf("a file that cannot be run was taken: %q", got)
	}
	if err := os.Chmod(ours, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := lookPathIn([]string{path}, "tool"); got != ours {
		t.Errorf("the first folder does not win: %q", got)
	}
	// The last of several settings counts, as it does for a process.
	if got, _ := lookPathIn([]string{path, "PATH=" + second}, "tool"); got != want {
		t.Errorf("an earlier PATH was taken: %q", got)
	}
	if _, err := lookPathIn([]string{"HOME=/"}, "tool"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without a PATH: %v", err)
	}
}

func TestTheFixedAddressesAreThoseOfTheDocumentation(t *testing.T) {
	world := Demo{Dir: "/demo"}.World()
	if world.image() != "localhost:5080/tazzo/tazlab.net" || world.gitURL() != "http://localhost:5081/tazlab-k8s.git" {
		t.Errorf("%s, %s", world.image(), world.gitURL())
	}
}
