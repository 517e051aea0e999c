package imagesbom

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/siteimage"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
	"tazlab.net/castle/ci/publish/worktree"
)

const status = `Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.36-9
Description: GNU C Library
 with a line that goes on
 .
 Package: not-one

Package: nginx
Status: install ok installed
Architecture: amd64
Version: 1.30.5-1~bookworm
Source: nginx-src (1.30.5)

Package: gone
Status: deinstall ok config-files
Version: 1
`

// layer is one with these files; a name that ends in a slash is left out.
func layer(t *testing.T, files map[string]string) v1.Layer {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// site is an image as siteimage makes it: the base's layers, and above them one of the site's.
func site(t *testing.T, architecture string, base ...v1.Layer) v1.Image {
	t.Helper()
	own := layer(t, map[string]string{"var/lib/dpkg/status": "Package: a-page-of-the-site\nStatus: install ok installed\nVersion: 1\n"})
	image, err := mutate.AppendLayers(empty.Image, append(base, own)...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.History = append(make([]v1.History, len(base)), v1.History{CreatedBy: siteimage.LayerHistory + "pages"})
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.base.name": "docker.io/library/nginx:1.30.5", "org.opencontainers.image.base.digest": "sha256:" + strings.Repeat("b", 64),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	made := inputs.Inputs{Commit: strings.Repeat("c", 40), Hugo: "ghcr.io/gohugoio/hugo:v0.165.0@sha256:" + strings.Repeat("d", 64), Castle: "0.1.0"}
	return mutate.Annotations(image, made.Annotations()).(v1.Image)
}

func debianBase(t *testing.T) []v1.Layer {
	return []v1.Layer{
		layer(t, map[string]string{"usr/lib/os-release": "ID=debian\nVERSION_ID=\"12\"\n", "var/lib/dpkg/status": "Package: old\nStatus: install ok installed\nVersion: 0\n"}),
		layer(t, map[string]string{"./var/lib/dpkg/status": status}),
		layer(t, map[string]string{"etc/nginx/nginx.conf": "events {}"}),
	}
}

func optionsFor(t *testing.T, artifact ocilayout.Artifact, files map[string]string) Options {
	t.Helper()
	o := Options{
		Layout: filepath.Join(t.TempDir(), "layout"), Export: t.TempDir(), Site: ".",
		Commit: worktree.Commit{SHA: strings.Repeat("c", 40), Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: "https://example.org/blog"},
		Hugo:   hugoversion.Choice{Version: "0.165.0"}, Repository: "ghcr.io/me/blog", Tag: "blog-ccccccc", Digest: "sha256:" + strings.Repeat("a", 64),
	}
	if err := ocilayout.Write(o.Layout, artifact); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.Export, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// read is a document's packages as "name version purl", and its relationships by names.
func read(t *testing.T, o Options) (packages, relations []string, text string) {
	t.Helper()
	made, parts, err := Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Packages []struct {
			Name, SPDXID, VersionInfo string
			ExternalRefs              []struct{ ReferenceLocator string }
		}
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
	}
	if err := json.Unmarshal(made, &document); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"SPDXRef-DOCUMENT": "document"}
	for _, p := range document.Packages {
		line := p.Name + " " + p.VersionInfo
		for _, ref := range p.ExternalRefs {
			line += " " + ref.ReferenceLocator
		}
		packages, names[p.SPDXID] = append(packages, line), p.Name
	}
	for _, r := range document.Relationships {
		relations = append(relations, names[r.SpdxElementID]+" "+r.RelationshipType+" "+names[r.RelatedSpdxElement])
	}
	if parts != len(packages) {
		t.Errorf("%d parts are told, and there are %d", parts, len(packages))
	}
	return packages, relations, string(made)
}

func mustHave(t *testing.T, all []string, wanted ...string) {
	t.Helper()
	for _, one := range wanted {
		if !slices.Contains(all, one) {
			t.Errorf("no %q in\n%s", one, strings.Join(all, "\n"))
		}
	}
}

func TestAnImagesPartsAreListed(t *testing.T) {
	packages, relations, text := read(t, optionsFor(t, site(t, "amd64", debianBase(t)...), nil))
	mustHave(t, packages,
		"ghcr.io/me/blog blog-ccccccc pkg:oci/blog@sha256:"+strings.Repeat("a", 64)+"?repository_url=ghcr.io%2Fme%2Fblog&tag=blog-ccccccc",
		"https://example.org/blog "+strings.Repeat("c", 40),
		"hugo 0.165.0 pkg:golang/github.com/gohugoio/hugo@v0.165.0",
		"docker.io/library/nginx:1.30.5 sha256:"+strings.Repeat("b", 64)+" pkg:oci/nginx@sha256:"+strings.Repeat("b", 64)+"?repository_url=docker.io%2Flibrary%2Fnginx&tag=1.30.5",
		"libc6 2.36-9 pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=debian-12&upstream=glibc",
		"nginx 1.30.5-1~bookworm pkg:deb/debian/nginx@1.30.5-1~bookworm?arch=amd64&distro=debian-12&upstream=nginx-src%401.30.5",
	)
	mustHave(t, relations, "document DESCRIBES ghcr.io/me/blog", "ghcr.io/me/blog GENERATED_FROM https://example.org/blog", "hugo BUILD_TOOL_OF ghcr.io/me/blog",
		"ghcr.io/me/blog DESCENDANT_OF docker.io/library/nginx:1.30.5", "docker.io/library/nginx:1.30.5 CONTAINS nginx")
	if len(packages) != 6 {
		t.Errorf("there are %d: what is no longer installed, what an earlier layer had, or a file of the site is among them:\n%s", len(packages), strings.Join(packages, "\n"))
	}
	for _, words := range []string{"run from the image ghcr.io/gohugoio/hugo:v0.165.0@sha256:", "Tool: castle-0.1.0", `"created":"2026-01-02T03:04:05Z"`, "git+https://example.org/blog@"} {
		if !strings.Contains(text, words) {
			t.Errorf("no %q in %s", words, text)
		}
	}
}

func TestTheSameImageHasTheSameSBOM(t *testing.T) {
	files := map[string]string{"package.json": `{"devDependencies": {"postcss": "8"}}`, "package-lock.json": lock}
	_, _, first := read(t, optionsFor(t, site(t, "amd64", debianBase(t)...), files))
	if _, _, second := read(t, optionsFor(t, site(t, "amd64", debianBase(t)...), files)); first != second {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestAPackageDatabaseThatWasRemovedIsNotRead(t *testing.T) {
	layers := append(debianBase(t), layer(t, map[string]string{"var/lib/dpkg/.wh.status": ""}))
	packages, _, _ := read(t, optionsFor(t, site(t, "amd64", layers...), nil))
	if len(packages) != 4 {
		t.Errorf("%s", strings.Join(packages, "\n"))
	}
}

func TestAlpinesPackagesAreListed(t *testing.T) {
	base := layer(t, map[string]string{
		"etc/os-release":       "ID=alpine\nVERSION_ID=3.22.1\n",
		"lib/apk/db/installed": "C:Q1x=\nP:musl\nV:1.2.5-r1\nA:x86_64\n\nC:Q1y=\nP:nginx\nV:1.30.5-r1\nA:x86_64\n",
	})
	packages, _, _ := read(t, optionsFor(t, site(t, "amd64", base), nil))
	mustHave(t, packages, "nginx 1.30.5-r1 pkg:apk/alpine/nginx@1.30.5-r1?arch=x86_64&distro=alpine-3.22.1", "musl 1.2.5-r1 pkg:apk/alpine/musl@1.2.5-r1?arch=x86_64&distro=alpine-3.22.1")
}

func TestEachPlatformOfAnIndexHasItsParts(t *testing.T) {
	index, err := siteimage.Index(inputs.Inputs{Commit: strings.Repeat("c", 40)}, site(t, "amd64", debianBase(t)...), site(t, "arm64", debianBase(t)...))
	if err != nil {
		t.Fatal(err)
	}
	packages, relations, _ := read(t, optionsFor(t, index, nil))
	mustHave(t, packages, "ghcr.io/me/blog blog-ccccccc linux/amd64", "ghcr.io/me/blog blog-ccccccc linux/arm64")
	mustHave(t, relations, "ghcr.io/me/blog VARIANT_OF ghcr.io/me/blog")
	if len(packages) != 3+2*4 {
		t.Errorf("%s", strings.Join(packages, "\n"))
	}
}

const lock = `{"lockfileVersion": 3, "packages": {
	"": {"name": "site"},
	"node_modules/postcss": {"version": "8.5.0", "resolved": "https://registry.npmjs.org/postcss/-/postcss-8.5.0.tgz", "integrity": "sha512-AQID"},
	"node_modules/@a/b": {"version": "1.0.0"},
	"node_modules/x/node_modules/@a/b": {"version": "1.0.0"},
	"node_modules/linked": {"link": true}
}}`

func TestWhatTheSitePinsIsListed(t *testing.T) {
	packages, relations, text := read(t, optionsFor(t, site(t, "amd64", debianBase(t)...), map[string]string{
		"go.mod":            "module example.org/blog\n\ngo 1.26\n\nrequire github.com/nunocoracao/blowfish/v2 v2.97.0\n",
		"package.json":      `{"devDependencies": {"postcss": "8"}}`,
		"package-lock.json": lock,
	}))
	mustHave(t, packages, "github.com/nunocoracao/blowfish/v2 v2.97.0 pkg:golang/github.com/nunocoracao/blowfish/v2@v2.97.0",
		"postcss 8.5.0 pkg:npm/postcss@8.5.0", "@a/b 1.0.0 pkg:npm/%40a/b@1.0.0")
	mustHave(t, relations, "github.com/nunocoracao/blowfish/v2 DEPENDENCY_OF https://example.org/blog", "postcss BUILD_DEPENDENCY_OF https://example.org/blog")
	if len(packages) != 6+3 || !strings.Contains(text, `{"algorithm":"SHA512","checksumValue":"010203"}`) {
		t.Errorf("%d packages: %s", len(packages), text)
	}
}

// npm packages that nothing installs are no part of the image.
func TestALockWithoutAListIsLeftOut(t *testing.T) {
	packages, _, _ := read(t, optionsFor(t, site(t, "amd64", debianBase(t)...), map[string]string{"package-lock.json": lock}))
	if len(packages) != 6 {
		t.Errorf("%s", strings.Join(packages, "\n"))
	}
}
