package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"
)

func newServer(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func reference(t *testing.T, server *httptest.Server, rest string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func randomImage(t *testing.T) v1.Image {
	t.Helper()
	img, err := random.Image(4096, 3)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digestOf(t *testing.T, thing interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := thing.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// readLayers pulls every layer; the client verifies sizes and digests as it reads.
func readLayers(t *testing.T, img v1.Image) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			t.Error(err)
		}
		content.Close()
	}
}

// do sends a request and returns the answer with its body read.
func do(t *testing.T, method, url string, body []byte, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func expect(t *testing.T, resp *http.Response, body string, status int, code string) {
	t.Helper()
	if resp.StatusCode != status || !strings.Contains(body, code) {
		t.Fatalf("got %s %s, want %d %s", resp.Status, body, status, code)
	}
}

func TestWhatWasPushedIsPulledAgainAfterARestart(t *testing.T) {
	root := t.TempDir()
	image := randomImage(t)
	index, err := random.Index(1024, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	first := newServer(t, Options{Root: root})
	if err := remote.Write(reference(t, first, "team/blog:v1"), image); err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference(t, first, "team/blog:v2"), index); err != nil {
		t.Fatal(err)
	}
	first.Close()

	second := newServer(t, Options{Root: root})
	pulled, err := remote.Image(reference(t, second, "team/blog:v1"))
	if err != nil {
		t.Fatal(err)
	}
	readLayers(t, pulled)
	if got, want := digestOf(t, pulled), digestOf(t, image); got != want {
		t.Errorf("image %s, want %s", got, want)
	}
	pulledIndex, err := remote.Index(reference(t, second, "team/blog:v2"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := pulledIndex.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range manifest.Manifests {
		childImage, err := pulledIndex.Image(child.Digest)
		if err != nil {
			t.Fatal(err)
		}
		readLayers(t, childImage)
	}
	byDigest, err := remote.Head(reference(t, second, "team/blog@"+digestOf(t, index)))
	if err != nil {
		t.Fatal(err)
	}
	if !byDigest.MediaType.IsIndex() {
		t.Errorf("media type %s, want an index", byDigest.MediaType)
	}
}

func TestConcurrentPushesOfTheSameLayersAllArrive(t *testing.T) {
	server := newServer(t, Options{})
	images := []v1.Image{randomImage(t), randomImage(t)}
	var group errgroup.Group
	for i := range 16 {
		group.Go(func() error {
			return remote.Write(reference(t, server, fmt.Sprintf("blog:v%d", i)), images[i%2])
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		pulled, err := remote.Image(reference(t, server, fmt.Sprintf("blog:v%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := digestOf(t, pulled), digestOf(t, images[i%2]); got != want {
			t.Errorf("v%d is %s, want %s", i, got, want)
		}
	}
}

func TestABlobIsServedWholeAndInRanges(t *testing.T) {
	server := newServer(t, Options{})
	data := []byte("0123456789")
	url := server.URL + "/v2/blog/blobs/" + sha(data)
	resp, body := do(t, "GET", url, nil)
	expect(t, resp, body, 404, "BLOB_UNKNOWN")
	resp, body = do(t, "POST", server.URL+"/v2/blog/blobs/uploads/?digest="+sha(data), data)
	expect(t, resp, body, 201, "")

	resp, body = do(t, "GET", url, nil)
	expect(t, resp, body, 200, "0123456789")
	resp, body = do(t, "GET", url, nil, "Range", "bytes=3-5")
	expect(t, resp, body, 206, "345")
	if got := resp.Header.Get("Content-Range"); got != "bytes 3-5/10" {
		t.Errorf("Content-Range %q", got)
	}
	resp, _ = do(t, "HEAD", url, nil)
	if resp.ContentLength != 10 || resp.Header.Get("Docker-Content-Digest") != sha(data) {
		t.Errorf("HEAD: length %d, digest %s", resp.ContentLength, resp.Header.Get("Docker-Content-Digest"))
	}
}

func TestABlobWithAnotherDigestIsRefusedAndLeavesNothing(t *testing.T) {
	root := t.TempDir()
	server := newServer(t, Options{Root: root})
	resp, body := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/?digest="+sha([]byte("one")), []byte("other"))
	expect(t, resp, body, 400, "DIGEST_INVALID")
	for _, dir := range []string{"uploads", "blobs/sha256"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 0 {
			t.Errorf("%s holds %v", dir, entries)
		}
	}
}

func TestAnUploadInChunksGoesOnWhereItStoodEvenAfterARestart(t *testing.T) {
	root := t.TempDir()
	server := newServer(t, Options{Root: root})
	resp, _ := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/", nil)
	location := resp.Header.Get("Location")
	resp, body := do(t, "PATCH", server.URL+location, []byte("01234"), "Content-Range", "0-4")
	expect(t, resp, body, 202, "")

	server = newServer(t, Options{Root: root})
	resp, _ = do(t, "GET", server.URL+location, nil)
	if resp.StatusCode != 204 || resp.Header.Get("Range") != "0-4" {
		t.Fatalf("status %s, range %q", resp.Status, resp.Header.Get("Range"))
	}
	resp, body = do(t, "PATCH", server.URL+location, []byte("89"), "Content-Range", "8-9")
	expect(t, resp, body, 416, "the next chunk starts at 5")
	resp, body = do(t, "PATCH", server.URL+location, []byte("567"), "Content-Range", "5-7")
	expect(t, resp, body, 202, "")
	resp, body = do(t, "PUT", server.URL+location+"?digest="+sha([]byte("0123456789")), []byte("89"))
	expect(t, resp, body, 201, "")
	resp, body = do(t, "PUT", server.URL+location+"?digest="+sha([]byte("0123456789")), nil)
	expect(t, resp, body, 404, "BLOB_UPLOAD_UNKNOWN")
}

func TestACutUploadIsNoBlobAndDoesNotHoldUpAnother(t *testing.T) {
	server := newServer(t, Options{})
	data := bytes.Repeat([]byte("x"), 1<<20)
	resp, _ := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/", nil)
	location := resp.Header.Get("Location")
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", location, len(data), data[:1000])
	// The upload stands still, and meanwhile another one of the same blob goes through.
	resp, body := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/?digest="+sha(data), data)
	expect(t, resp, body, 201, "")
	conn.Close()

	other := []byte("other")
	resp, body = do(t, "GET", server.URL+"/v2/blog/blobs/"+sha(other), nil)
	expect(t, resp, body, 404, "BLOB_UNKNOWN")
}

func TestAManifestIsRefusedBeforeItsBlobsAreThere(t *testing.T) {
	server := newServer(t, Options{})
	image := randomImage(t)
	err := remote.Put(reference(t, server, "blog:v1"), image)
	var refused *transport.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Errors[0].Code != "MANIFEST_BLOB_UNKNOWN" {
		t.Errorf("got %v", err)
	}
	index, err := random.Index(64, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	err = remote.Put(reference(t, server, "blog:v1"), index)
	if !errors.As(err, &refused) || refused.Errors[0].Code != "MANIFEST_UNKNOWN" {
		t.Errorf("got %v", err)
	}
	resp, body := do(t, "GET", server.URL+"/v2/blog/tags/list", nil)
	expect(t, resp, body, 404, "NAME_UNKNOWN")
}

func TestBadManifestsAreRefusedByName(t *testing.T) {
	server := newServer(t, Options{})
	const oci = "application/vnd.oci.image.manifest.v1+json"
	good := []byte(`{"schemaVersion":2,"layers":[]}`)
	for _, c := range []struct {
		name, reference, contentType string
		data                         []byte
		status                       int
		code                         string
	}{
		{"no JSON", "v1", oci, []byte("{"), 400, "MANIFEST_INVALID"},
		{"another Content-Type", "v1", "application/json", good, 400, "MANIFEST_INVALID"},
		{"an unknown media type", "v1", "text/plain", []byte(`{"mediaType":"text/plain"}`), 400, "MANIFEST_INVALID"},
		{"another digest", sha([]byte("x")), oci, good, 400, "DIGEST_INVALID"},
		{"no tag", "-v1", oci, good, 400, "TAG_INVALID"},
		{"too long", "v1", oci, bytes.Repeat([]byte(" "), maxManifest+1), 413, "SIZE_INVALID"},
		{"good", "v1", oci, good, 201, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := do(t, "PUT", server.URL+"/v2/blog/manifests/"+c.reference, c.data, "Content-Type", c.contentType)
			expect(t, resp, body, c.status, c.code)
		})
	}
}

func TestTagsAndRepositoriesAreListedInPages(t *testing.T) {
	server := newServer(t, Options{})
	image := randomImage(t)
	for _, rest := range []string{"a/b:v3", "a/b:v1", "a/b:v2", "a:x", "z/y/x:1"} {
		if err := remote.Write(reference(t, server, rest), image); err != nil {
			t.Fatal(err)
		}
	}
	repository := reference(t, server, "a/b:v1").Context()
	tags, err := remote.List(repository, remote.WithPageSize(2))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"v1", "v2", "v3"}; !slices.Equal(tags, want) {
		t.Errorf("tags %v, want %v", tags, want)
	}
	names, err := remote.Catalog(t.Context(), repository.Registry, remote.WithPageSize(1))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "a/b", "z/y/x"}; !slices.Equal(names, want) {
		t.Errorf("repositories %v, want %v", names, want)
	}
}

func TestDeletingAManifestDeletesItsTags(t *testing.T) {
	server := newServer(t, Options{})
	image, other := randomImage(t), randomImage(t)
	for tag, img := range map[string]v1.Image{"v1": image, "v2": image, "v3": other} {
		if err := remote.Write(reference(t, server, "blog:"+tag), img); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Delete(reference(t, server, "blog:v2")); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(reference(t, server, "blog:v1")); err != nil {
		t.Errorf("v1 went with v2: %v", err)
	}
	if err := remote.Delete(reference(t, server, "blog@"+digestOf(t, image))); err != nil {
		t.Fatal(err)
	}
	resp, body := do(t, "GET", server.URL+"/v2/blog/tags/list", nil)
	expect(t, resp, body, 200, `"tags":["v3"]`)
	if err := remote.Delete(reference(t, server, "blog:v1")); err == nil {
		t.Error("v1 was deleted twice")
	}
}

func TestCredentialsAreAskedForAndChecked(t *testing.T) {
	server := newServer(t, Options{Username: "user", Password: "pass-word"})
	image := randomImage(t)
	ref := reference(t, server, "blog:v1")
	for _, c := range []struct {
		username, password string
		ok                 bool
	}{{"", "", false}, {"user", "wrong", false}, {"wrong", "pass-word", false}, {"user", "", false}, {"user", "pass-word", true}} {
		auth := authn.FromConfig(authn.AuthConfig{Username: c.username, Password: c.password})
		err := remote.Write(ref, image, remote.WithAuth(auth))
		var refused *transport.Error
		if c.ok && err != nil || !c.ok && (!errors.As(err, &refused) || refused.StatusCode != 401) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	resp, body := do(t, "GET", server.URL+"/v2/", nil)
	expect(t, resp, body, 401, "UNAUTHORIZED")
	if got := resp.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic realm=") {
		t.Errorf("WWW-Authenticate %q", got)
	}
}

func TestAReadOnlyRegistryServesAndRefusesToWrite(t *testing.T) {
	root := t.TempDir()
	image := randomImage(t)
	if err := remote.Write(reference(t, newServer(t, Options{Root: root}), "blog:v1"), image); err != nil {
		t.Fatal(err)
	}
	server := newServer(t, Options{Root: root, ReadOnly: true})
	if _, err := remote.Head(reference(t, server, "blog:v1")); err != nil {
		t.Error(err)
	}
	if err := remote.Write(reference(t, server, "blog:v2"), image); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
	if err := remote.Delete(reference(t, server, "blog:v1")); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
}

func TestNoPathLeavesTheFolder(t *testing.T) {
	server := newServer(t, Options{})
	for _, path := range []string{
		"/v2/../blobs/x", "/v2/a/../../b/tags/list", "/v2/_manifests/tags/list", "/v2/A/tags/list",
		"/v2/a/manifests/..", "/v2/a/manifests/.new-1", "/v2/a/blobs/uploads/../../x", "/v2/a/blobs/sha256:..%2f..", "/",
	} {
		req, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = path // sent as it stands
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

func TestForgottenUploadsAreRemovedAtTheNextStart(t *testing.T) {
	root := t.TempDir()
	server := newServer(t, Options{Root: root})
	var paths []string
	for range 2 {
		resp, _ := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/", nil)
		paths = append(paths, filepath.Join(root, "uploads", resp.Header.Get("Docker-Upload-UUID")))
	}
	old := time.Now().Add(-uploadLife - time.Minute)
	if err := os.Chtimes(paths[0], old, old); err != nil {
		t.Fatal(err)
	}
	newServer(t, Options{Root: root})
	if _, err := os.Stat(paths[0]); !os.IsNotExist(err) {
		t.Errorf("the old upload is still there: %v", err)
	}
	if _, err := os.Stat(paths[1]); err != nil {
		t.Errorf("the young upload is gone: %v", err)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "Root") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Root: t.TempDir(), Username: "user"}); err == nil || !strings.Contains(err.Error(), "Password") {
		t.Errorf("got %v", err)
	}
}
