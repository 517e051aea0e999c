package e2e

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/version"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// keys are the variables that hold a pair's private half, the arguments that name them, and a file with the other half.
func keys(t *testing.T) (environment, args []string, public string) {
	t.Helper()
	public = filepath.Join(t.TempDir(), "cosign.pub")
	filetest.Write(t, public, publishtest.Keys().Public)
	return []string{"CANARY_COSIGN_KEY=" + publishtest.Keys().Private, "CANARY_COSIGN=" + publishtest.CosignPassword},
		[]string{"--cosign-key=env:CANARY_COSIGN_KEY", "--cosign-password=env:CANARY_COSIGN"}, public
}

func TestASignedBlogIsVerifiedAndAMovedTagIsNot(t *testing.T) {
	needs.Most(t)
	w := world.New(t)
	source := newSites(t, w)
	environment, key, public := keys(t)
	environment = append(environment, w.Environment()...)
	of := func(args ...string) outcome {
		return call(t, environment, append(append(args, "--source="+source, "--site=wiki"), w.Services()...)...)
	}

	if done := of("publish-blog", "--sign", "--sbom"); done.err == nil || !strings.Contains(done.stderr, "--cosign-key") {
		t.Errorf("without a key: %v\n%s", done.err, done.stderr)
	}
	done := of(append([]string{"publish-blog", "--sign", "--sbom"}, key...)...)
	if done.err != nil || !strings.Contains(done.stdout, "attached and signed") {
		t.Fatalf("%v\n%s\n%s", done.err, done.stdout, done.stderr)
	}
	for _, text := range []string{done.stdout, done.stderr} {
		if strings.Contains(text, publishtest.CosignPassword) || strings.Contains(text, strings.Split(publishtest.Keys().Private, "\n")[1]) {
			t.Error("the key or its password was printed")
		}
	}
	if done := of("verify-blog", "--public-key="+public); done.err != nil || !strings.Contains(done.stdout, "Verified: "+w.Image()) {
		t.Errorf("%v\n%s\n%s", done.err, done.stdout, done.stderr)
	}

	other, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(w.Image() + ":wiki-" + world.Git(t, source, "rev-parse", "HEAD")[:7])
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, other, remote.WithAuth(&authn.Basic{Username: "robot", Password: w.RegistryPassword})); err != nil {
		t.Fatal(err)
	}
	if done := of("verify-blog", "--public-key="+public); done.err == nil || !strings.Contains(done.stderr, "there is no signature") {
		t.Errorf("a moved tag: %v\n%s\n%s", done.err, done.stdout, done.stderr)
	}
}

// For this machine's platform alone: each further one is compiled for minutes.
func TestAReleaseIsRehearsedIntoALocalRegistryAndVerifiedFromThere(t *testing.T) {
	needs.Most(t)
	w := world.New(t)
	environment, key, public := keys(t)
	environment = append(environment, w.Environment()...)
	clone, dist := filepath.Join(t.TempDir(), "castle"), filepath.Join(t.TempDir(), "dist")
	world.Git(t, filepath.Dir(clone), "clone", "--quiet", root(t), clone)
	platform := "linux/" + runtime.GOARCH
	args := append([]string{"release", "--rehearse", "--version=v" + version.Castle, "--source=" + clone, "--source-url=https://example.org/castle",
		"--platforms=" + platform, "--host-platforms=" + platform}, key...)
	mustCall(t, environment, append(append(args, w.OnRegistry()...), "export", "--path="+dist)...)

	verify := []string{"verify-release", "--folder=" + dist, "--public-key=" + public, "--version=v" + version.Castle}
	for _, arg := range w.OnRegistry() {
		if !strings.HasPrefix(arg, "--image=") {
			verify = append(verify, arg)
		}
	}
	if text := mustCall(t, environment, verify...); !strings.Contains(text, "Verified: castle v"+version.Castle) {
		t.Errorf("%s", text)
	}
	filetest.Write(t, filepath.Join(dist, "castle_linux_"+runtime.GOARCH), "another program")
	if done := call(t, environment, verify...); done.err == nil || !strings.Contains(done.stderr, "has the SHA-256") {
		t.Errorf("a program that was changed: %v\n%s\n%s", done.err, done.stdout, done.stderr)
	}
}
