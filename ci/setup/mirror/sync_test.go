package mirror

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/setup/images"
)

// hub is a registry on disk behind a server that counts what is sent to it.
type hub struct {
	host string
	puts atomic.Int32 // PUT and PATCH: blobs and manifests
}

func newHub(t *testing.T, options registry.Options) *hub {
	t.Helper()
	options.Root = t.TempDir()
	handler, err := registry.New(options)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut || r.Method == http.MethodPatch {
			h.puts.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.host = strings.TrimPrefix(server.URL, "http://")
	return h
}

// single is an image for one platform.
func single(t *testing.T, platform string) v1.Image {
	t.Helper()
	image, err := random.Image(256, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// index has an image per platform, and as the official ones an attestation, which is for no real platform.
func index(t *testing.T, platforms ...string) v1.ImageIndex {
	t.Helper()
	made := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	for _, text := range append(platforms, "unknown/unknown") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			t.Fatal(err)
		}
		made = mutate.AppendManifests(made, mutate.IndexAddendum{Add: single(t, text), Descriptor: v1.Descriptor{Platform: platform}})
	}
	return made
}

// publish puts what an upstream has at repository:tag and gives its entry for a list, digest included.
func (h *hub) publish(t *testing.T, repository, tag string, what taggable) images.Image {
	t.Helper()
	image := images.Image{Key: strings.ReplaceAll(repository, "/", "-"), Name: h.host + "/" + repository, Tag: tag, Platforms: []string{"linux/amd64", "linux/arm64"}}
	at, err := name.NewTag(image.Reference())
	if err != nil {
		t.Fatal(err)
	}
	switch what := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(at, what)
	case v1.Image:
		err = remote.Write(at, what)
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := what.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image.Digest = digest.String()
	return image
}

func synced(t *testing.T, opts SyncOptions) []Synced {
	t.Helper()
	done, err := Sync(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestACopyOfSomePlatformsNamesItsUpstream(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	image := up.publish(t, "library/golang", "1.26.4-bookworm", index(t, "linux/amd64", "linux/arm64/v8", "linux/s390x"))
	done := synced(t, SyncOptions{List: images.List{image}, To: to.host + "/team", Platforms: image.Platforms})
	if len(done) != 1 || done[0].Target != to.host+"/team/library/golang:1.26.4-bookworm" || !done[0].Copied {
		t.Fatalf("got %+v", done)
	}
	at, err := name.NewTag(done[0].Target)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := remote.Index(at)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := copied.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
		if _, err := remote.Image(at.Context().Digest(d.Digest.String())); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64/v8"}) || manifest.Annotations[AnnotationSource] != image.Digest {
		t.Errorf("platforms %v, annotations %v", platforms, manifest.Annotations)
	}
	if findings, err := Verify(context.Background(), VerifyOptions{List: images.List{image}, Registry: to.host + "/team"}); err != nil || findings[0].StandIn {
		t.Errorf("verify: %v, %v", findings, err)
	}
}

// The module pulls by digest, so that the mirror must have what the list names, whatever else upstream put there.
func TestACopyIsFoundUnderUpstreamsDigest(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	image := up.publish(t, "library/golang", "1.26.4-bookworm", index(t, "linux/amd64", "linux/arm64", "linux/s390x"))
	synced(t, SyncOptions{List: images.List{image}, To: to.host})
	at, err := name.NewDigest(to.host + "/library/golang@" + image.Digest)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := remote.Index(at)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := copied.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if _, err := remote.Image(at.Context().Digest(d.Digest.String())); err != nil {
			t.Error(err)
		}
	}
}

func TestAnImageWithNothingToLeaveOutKeepsItsDigest(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	list := images.List{up.publish(t, "a/single", "1.0.0", single(t, "linux/amd64")), up.publish(t, "a/index", "1.0.0", index(t, "linux/amd64", "linux/arm64"))}
	list[0].Platforms = []string{"linux/amd64"}
	for i, one := range synced(t, SyncOptions{List: list[:1], To: to.host}) {
		if one.Digest != list[i].Digest {
			t.Errorf("%s: %s, want %s", one.Target, one.Digest, list[i].Digest)
		}
	}
	list[1].Platforms = append(list[1].Platforms, "unknown/unknown")
	if done := synced(t, SyncOptions{List: list[1:], To: to.host, Platforms: list[1].Platforms}); done[0].Digest != list[1].Digest {
		t.Errorf("%s, want %s", done[0].Digest, list[1].Digest)
	}
}

func TestWhatIsThereIsNotCopiedAgain(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	list := images.List{up.publish(t, "a/b", "1.0.0", index(t, "linux/amd64", "linux/arm64"))}
	first := synced(t, SyncOptions{List: list, To: to.host})
	sent := to.puts.Load()
	second := synced(t, SyncOptions{List: list, To: to.host})
	if second[0].Copied || second[0].Digest != first[0].Digest || to.puts.Load() != sent {
		t.Errorf("second %+v, sent %d then %d", second[0], sent, to.puts.Load())
	}
}

func TestTheDigestOfTheListIsCopiedEvenIfTheTagHasMoved(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	pinned := up.publish(t, "a/b", "1.0.0", single(t, "linux/amd64"))
	pinned.Platforms = []string{"linux/amd64"}
	moved := up.publish(t, "a/b", "1.0.0", single(t, "linux/amd64"))
	if done := synced(t, SyncOptions{List: images.List{pinned}, To: to.host}); done[0].Digest != pinned.Digest {
		t.Errorf("%s, want %s, the tag has %s", done[0].Digest, pinned.Digest, moved.Digest)
	}
	unpinned := pinned
	unpinned.Digest = ""
	if done := synced(t, SyncOptions{List: images.List{unpinned}, To: to.host}); done[0].Digest != moved.Digest || !done[0].Copied {
		t.Errorf("without a digest %+v, the tag has %s", done[0], moved.Digest)
	}
}

func TestAllThatCannotBeCopiedIsToldAndTheRestIsCopied(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	list := images.List{
		{Key: "none", Name: up.host + "/a/none", Tag: "1.0.0", Platforms: []string{"linux/amd64"}},
		up.publish(t, "a/amd", "1.0.0", index(t, "linux/amd64")),
		up.publish(t, "a/one", "1.0.0", single(t, "linux/amd64")),
		up.publish(t, "a/good", "1.0.0", index(t, "linux/amd64", "linux/arm64")),
	}
	done, err := Sync(context.Background(), SyncOptions{List: list, To: to.host})
	if len(done) != 1 || done[0].Image.Key != "a-good" {
		t.Errorf("copied %+v", done)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"a/none:1.0.0: ", "a/amd:1.0.0: ", "a/one:1.0.0: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if strings.Count(err.Error(), "there is none for linux/arm64") != 2 {
		t.Errorf("got %v", err)
	}
	if done := synced(t, SyncOptions{List: list[1:3], To: to.host, Platforms: []string{"linux/amd64"}}); len(done) != 2 {
		t.Errorf("with the platform overridden: %+v", done)
	}
}

// keys has one credential, for one host.
type keys struct{ host, user, password string }

func (k keys) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if r.RegistryStr() != k.host {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: k.user, Password: k.password}, nil
}

func TestCredentialsComeFromTheKeychainAndStayOutOfErrors(t *testing.T) {
	const canary = "canary-7d1f"
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{Username: "me", Password: canary})
	list := images.List{up.publish(t, "a/b", "1.0.0", index(t, "linux/amd64", "linux/arm64"))}
	synced(t, SyncOptions{List: list, To: to.host, Keychain: keys{to.host, "me", canary}})
	if _, err := Verify(context.Background(), VerifyOptions{List: list, Registry: to.host, Keychain: keys{to.host, "me", canary}}); err != nil {
		t.Error(err)
	}
	wrong := keys{to.host, "me", canary + "-wrong"}
	_, copyErr := Sync(context.Background(), SyncOptions{List: list, To: to.host, Keychain: wrong})
	_, verifyErr := Verify(context.Background(), VerifyOptions{List: list, Registry: to.host, Keychain: wrong})
	for _, err := range []error{copyErr, verifyErr} {
		if err == nil || !strings.Contains(err.Error(), "docker login "+to.host) || strings.Contains(err.Error(), canary) {
			t.Errorf("got %v", err)
		}
	}
}

func TestARateLimitIsExplained(t *testing.T) {
	limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer limited.Close()
	host := strings.TrimPrefix(limited.URL, "http://")
	list := images.List{{Key: "a", Name: host + "/a/b", Tag: "1.0.0", Platforms: []string{"linux/amd64"}}}
	if _, err := Sync(context.Background(), SyncOptions{List: list, To: host}); err == nil || !strings.Contains(err.Error(), host+" limits how much may be pulled") {
		t.Errorf("got %v", err)
	}
}

func TestACancelledSyncSaysSo(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	list := images.List{up.publish(t, "a/b", "1.0.0", single(t, "linux/amd64"))}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, copyErr := Sync(ctx, SyncOptions{List: list, To: to.host})
	_, verifyErr := Verify(ctx, VerifyOptions{List: list, Registry: to.host})
	if !errors.Is(copyErr, context.Canceled) || !errors.Is(verifyErr, context.Canceled) {
		t.Errorf("got %v and %v", copyErr, verifyErr)
	}
}

func TestVerifyTellsAllProblemsInTheListsOrder(t *testing.T) {
	h := newHub(t, registry.Options{})
	both := index(t, "linux/amd64", "linux/arm64")
	list := images.List{
		{Key: "none", Name: "quay.io/a/none", Tag: "1.0.0", Platforms: []string{"linux/amd64"}},
		h.publish(t, "a/good", "1.0.0", both),
		h.publish(t, "a/other", "1.0.0", both),
		h.publish(t, "a/lacks", "1.0.0", index(t, "linux/amd64")),
		h.publish(t, "a/single", "1.0.0", single(t, "linux/amd64")),
	}
	list[2].Digest = "sha256:" + strings.Repeat("0", 64)
	findings, err := Verify(context.Background(), VerifyOptions{List: list, Registry: h.host})
	if err == nil || len(findings) != len(list) {
		t.Fatalf("got %v, %v", findings, err)
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{"a/none:1.0.0: missing", "a/other:1.0.0: is not what images.yaml names", "a/lacks:1.0.0: there is none for linux/arm64",
		"a/single:1.0.0: there is none for linux/arm64"}
	if len(lines) != len(want) {
		t.Fatalf("got\n%v", err)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], h.host+"/"+want[i]) {
			t.Errorf("got %q, want %q", lines[i], want[i])
		}
	}
	if good := findings[1]; good.Problem != nil || good.Digest != list[1].Digest || good.String() != h.host+"/a/good:1.0.0: "+list[1].Digest {
		t.Errorf("the good one: %s", good)
	}
}

func TestVerifyTellsStandInsApart(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	built := w.build(cache, theList(), "golang", "hugo", "nginx")
	host := serve(t, cache)
	list := theList()
	list[0].Digest = "sha256:" + strings.Repeat("0", 64) // upstream's, which a stand-in never has
	findings, err := Verify(context.Background(), VerifyOptions{List: list, Registry: host, StandInsOnly: true})
	if err != nil || len(findings) != 3 {
		t.Fatalf("got %v, %v", findings, err)
	}
	for i, f := range findings {
		if !f.StandIn || f.Digest != built[i].Digest || !strings.Contains(f.String(), ": stand-in sha256:") || !strings.Contains(f.MadeFrom, "Debian") {
			t.Errorf("%s", f)
		}
	}
	if _, err := Verify(context.Background(), VerifyOptions{List: list, Registry: host}); err == nil || !strings.Contains(err.Error(), "engine:v0.19.10: missing") {
		t.Errorf("with the engine: %v", err)
	}
	list[0].Platforms = []string{"linux/s390x"}
	list[1].Name = "quay.io/gohugoio/hugo" // at a mirror the same place as ghcr.io/gohugoio/hugo
	_, err = Verify(context.Background(), VerifyOptions{List: list, Registry: host, StandInsOnly: true})
	if err == nil || !strings.Contains(err.Error(), "is a stand-in for linux/amd64, not for linux/s390x") ||
		!strings.Contains(err.Error(), "is a stand-in for ghcr.io/gohugoio/hugo:v0.165.0") {
		t.Errorf("got %v", err)
	}
}
