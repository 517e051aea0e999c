//go:build linux

package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// publishDeadline bounds the first call, which compiles the module and castle's program in an empty cache.
const publishDeadline = 15 * time.Minute

func TestASiteIsPublishedWithDockerAndTheDaggerCLI(t *testing.T) {
	needs.Most(t)
	endToEnd(t)
	start := time.Now()
	newDaemon(t)
	list, cache := imageList(t), needs.Cache(t)
	port := newMirror(t, cache, list)
	own := daggerengine.Engine{Cache: cache, Toolchain: toolchain(list, port), Log: output{t}}
	loadEngine(t, own, list)
	configureEngine(t, list, port)

	t.Setenv(setup.RunnerHost, "") // restores it afterwards
	os.Unsetenv(setup.RunnerHost)
	plan, err := setup.Setup{Engine: own, Log: output{t}}.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan.Kind != setup.Docker || plan.Host != "" {
		t.Fatalf("the set-up chose an engine %s (host %q), want one %s", plan.Kind, plan.Host, setup.Docker)
	}

	w, source := world.New(t), newSite(t)
	result := publishInto(t, w, plan, source)
	sha := world.Git(t, source, "rev-parse", "HEAD")
	if want := "blog-" + sha[:7]; result.Image.Tag != want || !result.Changed || result.Source.Commit != sha {
		t.Errorf("got tag %q, changed %t, commit %s; want %q, true, %s", result.Image.Tag, result.Changed, result.Source.Commit, want, sha)
	}
	if digest := w.DigestAt(t, result.Image.Tag); digest == "" || digest != result.Image.Digest {
		t.Errorf("the registry has %q, the report says %q", digest, result.Image.Digest)
	}
	if manifest := w.ManifestOn(t, "main"); !strings.Contains(manifest, "image: '"+w.Image()+":"+result.Image.Tag+"'") {
		t.Errorf("the manifest does not name the image:\n%s", manifest)
	}
	official, err := list.Get("engine")
	if err != nil {
		t.Fatal(err)
	}
	if containers := docker(t, "ps", "--format={{.Image}} {{.Names}}"); containers != official.Reference()+" dagger-engine-"+official.Tag {
		t.Errorf("Docker runs %q, want the engine alone", containers)
	}
	took(t, "all of it", start)
}

// publishInto calls publish-blog of this repository's module and reads the report.
func publishInto(t *testing.T, w *world.World, plan setup.Plan, source string) report.Result {
	t.Helper()
	defer took(t, "publish, with an engine that starts empty", time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), publishDeadline)
	defer cancel()
	dagger := "dagger"
	if plan.CLI != "" {
		dagger = filepath.Join(plan.CLI, "dagger")
	}
	command := exec.CommandContext(ctx, dagger, append([]string{
		"call", "--progress=plain", "publish-blog", "--source=" + source, "--path=.", "--format=JSON",
	}, append(w.OnRegistry(), w.OnGitOps()...)...)...)
	command.Dir = filepath.Join("..", "..", "..")
	command.Env = append(plan.Env(os.Environ()), append(w.Environment(), "NO_COLOR=1")...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 20 * time.Second
	if err := command.Run(); err != nil {
		t.Fatalf("dagger call publish-blog: %v\n%s\nthe containers:\n%s", err, stderr.String(), docker(t, "ps", "--all"))
	}
	var result report.Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, stdout.String())
	}
	return result
}
