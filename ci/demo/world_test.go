package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/manifest"
)

const password = "canary-3d8a-demo"

// newWorld is a world on addresses that nothing else listens on.
func newWorld(t *testing.T) World {
	t.Helper()
	world := World{Dir: filepath.Join(t.TempDir(), "world")}
	if err := os.Mkdir(world.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, address := range []*string{&world.Registry, &world.Git} {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		*address = fmt.Sprintf("localhost:%d", port)
	}
	return world
}

// serve serves a world until stop is called, which the test's end does too.
func serve(t *testing.T, world World) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- world.Serve(ctx) }()
	deadline := time.After(20 * time.Second)
	for {
		if _, err := os.Stat(world.serving()); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the world ended: %v", err)
		case <-deadline:
			t.Fatal("the world does not serve")
		case <-time.After(5 * time.Millisecond):
		}
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func status(t *testing.T, url, password string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		request.SetBasicAuth(username, password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestAWorldIsServedToWhoHasThePassword(t *testing.T) {
	t.Setenv(passwordVariable, password)
	world := newWorld(t)
	stop := serve(t, world)
	for _, url := range []string{
		"http://" + world.Registry + "/v2/",
		world.gitURL() + "/info/refs?service=git-upload-pack",
	} {
		for given, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, password: http.StatusOK} {
			if got := status(t, url, given); got != want {
				t.Errorf("%s with the password %q: %d, want %d", url, given, got, want)
			}
		}
	}
	stop()
	if _, err := os.Stat(world.serving()); !os.IsNotExist(err) {
		t.Errorf("the world still says that it serves: %v", err)
	}
	if err := searchFolder(world.Dir, password); err != nil {
		t.Error(err)
	}
}

func searchFolder(dir, secret string) error {
	return filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(content), secret) {
			return fmt.Errorf("%s holds the password", name)
		}
		return err
	})
}

func TestAWorldWithoutAPasswordIsNotServed(t *testing.T) {
	t.Setenv(passwordVariable, "")
	world := newWorld(t)
	err := world.Serve(t.Context())
	if err == nil || !strings.Contains(err.Error(), passwordVariable) || !strings.Contains(err.Error(), "make demo") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(world.gitopsDir()); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
}

func TestTheGitOpsRepositoryNamesTheWorldsRegistryInItsManifest(t *testing.T) {
	t.Setenv(passwordVariable, password)
	world := newWorld(t)
	serve(t, world)
	for _, file := range strings.Fields(gitIn(t, world, "ls-tree", "-r", "--name-only", branch)) {
		if content := gitIn(t, world, "show", branch+":"+file); strings.Contains(content, "IMAGE") {
			t.Errorf("%s holds the placeholder:\n%s", file, content)
		}
	}
	// What publish-blog will do must find exactly one reference.
	result, err := gitops.Update(t.Context(), gitops.Repository{
		URL: world.gitURL(), Branch: branch, Credentials: git.Credentials{Token: password},
	}, gitops.UpdateRequest{
		Path: manifestPath, Selector: manifest.Selector{Image: world.image()}, Tag: "blog-1a2b3c4", Digest: "sha256:" + strings.Repeat("1", 64),
	})
	if err != nil || !result.Changed || !strings.Contains(result.Change.NewLine, world.image()+":blog-1a2b3c4") {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestASecondStartFindsTheRepositoryAsItWas(t *testing.T) {
	t.Setenv(passwordVariable, password)
	world := newWorld(t)
	stop := serve(t, world)
	stop()
	published, err := gitserver.Seed(t.Context(), world.gitopsDir(), branch, gitserver.Commit{
		Message: "Publish", Files: fstest.MapFS{"new.txt": &fstest.MapFile{Data: []byte("new\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, world)
	if tip := gitIn(t, world, "rev-parse", branch); tip != published {
		t.Errorf("the branch is at %s, want %s", tip, published)
	}
}

func TestAStartThatWasCutShortIsMadeGoodByTheNext(t *testing.T) {
	t.Setenv(passwordVariable, password)
	world := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := world.seed(ctx); err == nil {
		t.Fatal("the repository was made in no time")
	}
	// As a killed process leaves it: begun and without a commit.
	if err := gitserver.InitBare(t.Context(), filepath.Join(world.Dir, "unfinished.git"), branch); err != nil {
		t.Fatal(err)
	}
	serve(t, world)
	if subject := gitIn(t, world, "log", "-1", "--format=%s", branch); subject != "Add the blog" {
		t.Errorf("the newest commit is %q", subject)
	}
}

func TestAnAddressInUseIsNamedWithTheFix(t *testing.T) {
	t.Setenv(passwordVariable, password)
	world := newWorld(t)
	_, port, err := net.SplitHostPort(world.Git)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = world.Serve(t.Context())
	if err == nil || !strings.Contains(err.Error(), world.Git) || !strings.Contains(err.Error(), "stop what listens there") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(world.serving()); !os.IsNotExist(err) {
		t.Errorf("the world says that it serves: %v", err)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	listener, err := listenOnLoopback("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if address := listener.Addr().(*net.TCPAddr); !address.IP.IsLoopback() {
		t.Errorf("listens on %s", address)
	}
	if _, err := listenOnLoopback("localhost"); err == nil {
		t.Error("an address without a port was accepted")
	}
}

func gitIn(t *testing.T, world World, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: world.gitopsDir()}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
