package e2e

import (
	"tazlab.net/castle/ci/base/registry/registrytest"

	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// TestNoSecretIsLeftAnywhere publishes with canaries for secrets, once well and once badly, and looks for them in
// everything that was printed, pushed, committed or kept.
func TestNoSecretIsLeftAnywhere(t *testing.T) {
	needs.MainPath(t)
	began := time.Now().Add(-time.Second)
	w, source := world.New(t), newBlog(t)
	result := publishJSON(t, w, source)
	w.Faults.Arm(registrytest.Fault{Mood: registrytest.Unauthorized, Times: 1000})
	publishFails(t, w, source, "--tag-prefix=other-")

	canaries := [][]byte{[]byte(w.RegistryPassword), []byte(w.GitToken)}
	look := func(place string, data []byte) {
		for _, canary := range canaries {
			if bytes.Contains(data, canary) {
				t.Errorf("a secret is in %s", place)
			}
		}
	}
	look("what dagger printed", transcript.Bytes())
	look("the GitOps repository's history", []byte(world.Git(t, w.Repository(), "log", "--all", "--patch", "--format=fuller")))
	files := 0
	for _, place := range []string{w.RegistryDir, w.GitDir, source} {
		files += lookInFolder(t, place, time.Time{}, look)
	}
	if result.Image.Digest == "" || files == 0 {
		t.Fatal("nothing was published, so nothing was searched")
	}
	if engine := filepath.Join(os.Getenv("CASTLE_CACHE"), "engine"); ownEngine() {
		kept := lookInFolder(t, engine, began, look)
		t.Logf("searched %d files that the engine wrote meanwhile", kept)
	} else {
		t.Log("NOT SEARCHED: the state of an engine that is not castle's own")
	}
}

// ownEngine tells whether the engine is one that castle started in its cache.
func ownEngine() bool {
	cache := os.Getenv("CASTLE_CACHE")
	return cache != "" && os.Getenv("_EXPERIMENTAL_DAGGER_RUNNER_HOST") == "unix://"+filepath.Join(cache, "engine/run/dagger/engine.sock")
}

// lookInFolder shows look every file that is not older than since, and what is in it where it is compressed. It returns
// how many there were.
func lookInFolder(t *testing.T, folder string, since time.Time, look func(place string, data []byte)) int {
	t.Helper()
	// Beyond this size a file is an image's layer or a compiled program.
	const largest = 256 << 20
	files := 0
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the engine removes what it no longer needs
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.ModTime().Before(since) || info.Size() > largest {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil
		}
		files++
		look(name, data)
		if reader, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			if plain, err := io.ReadAll(reader); err == nil {
				look(name+" (decompressed)", plain)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
