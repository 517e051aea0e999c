package siteimage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/site/siteheaders"
)

func TestTheSameBytesGiveTheSameDigestOnAnotherMachineAndDay(t *testing.T) {
	files := smallSite()
	files["big.bin"] = string(noise(3, readAhead+1000))
	files["big.json"] = text("big", readAhead+1000)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)

	_, first := mustBuild(t, newOptions(t, filetest.New(t, files)))

	defer func(local *time.Location) { time.Local = local }(time.Local)
	time.Local = time.FixedZone("elsewhere", -9*3600)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := t.TempDir()
	for i, name := range slices.Backward(names) {
		path := filepath.Join(dir, name)
		filetest.Write(t, path, files[name])
		when := time.Unix(int64(1_600_000_000+i), 0)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, second := mustBuild(t, newOptions(t, dir))

	one, two := toJSON(t, first), toJSON(t, second)
	if one != two {
		t.Errorf("two builds of the same bytes differ:\n%s\n%s", one, two)
	}
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The layers' bytes are a promise to everybody who published with this version. When this fails, what the same commit
// gives has changed: raise layerFormat, and say so in the release notes.
func TestTheBytesOfALayerAreThoseOfYesterday(t *testing.T) {
	group := group{"pages", siteDir, []file{memoryFile("index.html", []byte(text("home", 2000))), memoryFile("é/x.bin", noise(1, 900))}}
	group.files[0].vary = true
	var tarred bytes.Buffer
	l, err := group.compressTo(t.Context(), &tarred)
	if err != nil {
		t.Fatal(err)
	}
	if header := tarred.Bytes()[:10]; !bytes.Equal(header, []byte{31, 139, 8, 0, 0, 0, 0, 0, 0, 255}) {
		t.Errorf("gzip header % x holds a time or an operating system", header)
	}
	const want = "5d6c8914af53c63c1b61f65c600a1ee7eeb419248840fd1176e03827d21cd7ca"
	if l.digest.Hex != want {
		t.Errorf("layer is %s, want %s", l.digest.Hex, want)
	}
}

func TestTheLayersStandInTheOrderOfTheirRateOfChange(t *testing.T) {
	_, report := mustBuild(t, newOptions(t, filetest.New(t, smallSite())))
	var names []string
	for _, l := range report.Layers {
		names = append(names, l.Name)
	}
	if want := []string{"base 1/1", "server", "assets", "pages", "terms", "lists", "feeds"}; !slices.Equal(names, want) {
		t.Errorf("layers %v, want %v", names, want)
	}
}

func TestLayersWithoutFilesAreLeftOut(t *testing.T) {
	_, report := mustBuild(t, newOptions(t, filetest.New(t, map[string]string{"index.html": "x"})))
	if len(report.Layers) != 3 || report.Layers[2].Name != "lists" || report.Layers[2].Files != 1 {
		t.Errorf("layers %+v", report.Layers)
	}
}

func TestAChangedPageSendsOnlyItsShardAndTheListsThatNameIt(t *testing.T) {
	files := pages(300, 7000)
	files["style.css"] = "body{}"
	o := newOptions(t, filetest.New(t, files))
	_, before := mustBuild(t, o)

	filetest.Write(t, filepath.Join(o.Site, "articles/page-7/index.html"), strings.Replace(files["articles/page-7/index.html"], ".", ",", 1))
	filetest.Write(t, filepath.Join(o.Site, "index.xml"), "another feed")
	_, after := mustBuild(t, o)

	changed := changedLayers(t, before, after)
	if len(before.Layers) != 9 || len(changed) != 2 || !strings.HasPrefix(changed[0].Name, "pages ") || changed[1].Name != "feeds" {
		t.Errorf("of %d layers changed %v", len(before.Layers), changed)
	}
}

// changedLayers are those of a second build that the first one lacks.
func changedLayers(t *testing.T, before, after Report) []Layer {
	t.Helper()
	old := digests(before)
	var changed []Layer
	for _, l := range after.Layers {
		if old[l.Name] != l.Digest {
			changed = append(changed, l)
		}
		if l.Unchanged != (old[l.Name] == l.Digest) {
			t.Errorf("%s: Unchanged is %t", l.Name, l.Unchanged)
		}
	}
	return changed
}

// A comma in an article also stands in the search indexes of its language, in the feeds of its section and in those of its
// tags. On a site that is mostly lists, the pages of lists and what other languages and tags have stay where they are.
func TestACommaOnASiteWithManyListsSendsLittleMoreThanTheFilesWithIt(t *testing.T) {
	files := map[string]string{}
	for _, language := range []string{"", "it/", "ja/"} {
		files[language+"index.html"] = prose(language+"home", 60_000)
		files[language+"index.json"] = prose(language+"search", 800_000)
		files[language+"index.xml"] = prose(language+"feed", 60_000)
		files[language+"posts/index.html"] = prose(language+"section", 60_000)
		files[language+"posts/index.xml"] = prose(language+"section's feed", 60_000)
		for i := range 10 {
			files[fmt.Sprintf("%sposts/page/%d/index.html", language, i+2)] = prose(fmt.Sprint(language, "pager ", i), 60_000)
		}
		for i := range 60 {
			files[fmt.Sprintf("%stags/tag-%d/index.html", language, i)] = prose(fmt.Sprint(language, "tag ", i), 20_000)
			files[fmt.Sprintf("%stags/tag-%d/index.xml", language, i)] = prose(fmt.Sprint(language, "tag's feed ", i), 10_000)
		}
		for i := range 100 {
			files[fmt.Sprintf("%sposts/page-%d/index.html", language, i)] = prose(fmt.Sprint(language, "article ", i), 12_000)
		}
	}
	o := newOptions(t, filetest.New(t, files))
	_, before := mustBuild(t, o)

	for _, name := range []string{"posts/page-7/index.html", "index.json", "index.xml", "posts/index.xml", "tags/tag-3/index.xml", "tags/tag-4/index.xml"} {
		filetest.Write(t, filepath.Join(o.Site, name), strings.Replace(files[name], " ", ",", 1))
	}
	_, after := mustBuild(t, o)

	changed := changedLayers(t, before, after)
	var all, sent int64
	for _, l := range after.Layers {
		all += l.Bytes
	}
	for _, l := range changed {
		sent += l.Bytes
		if kind, _, _ := strings.Cut(l.Name, " "); kind != "pages" && kind != "feeds" {
			t.Errorf("%s changed", l.Name)
		}
	}
	if len(changed) > 6 || sent*4 > all {
		t.Errorf("a comma in six files sends %d layers with %d bytes, of %d with %d", len(changed), sent, len(after.Layers), all)
	}
}

func TestOneMorePageMovesNoOther(t *testing.T) {
	o := newOptions(t, filetest.New(t, pages(300, 600)))
	image, report := mustBuild(t, o)
	before := entries(t, image, report)
	filetest.Write(t, filepath.Join(o.Site, "articles/page-new/index.html"), "new")
	image, report = mustBuild(t, o)
	for name, e := range entries(t, image, report) {
		if old, ok := before[name]; ok && e.Typeflag == tar.TypeReg && old.layer != e.layer {
			t.Errorf("%s moved from %s to %s", name, old.layer, e.layer)
		}
	}
}

func TestAnotherCommitWithTheSameSiteSendsNoLayer(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	_, before := mustBuild(t, o)
	o.Revision, o.Created = strings.Repeat("cd", 20), commitTime.Add(time.Hour)
	_, after := mustBuild(t, o)
	if before.Digest == after.Digest {
		t.Error("two commits have one digest")
	}
	if toJSON(t, digests(before)) != toJSON(t, digests(after)) {
		t.Error("layers changed with the commit")
	}
}

func TestLayersCarryNothingOfTheMachine(t *testing.T) {
	image, report := mustBuild(t, newOptions(t, filetest.New(t, smallSite())))
	found := entries(t, image, report)
	for name, e := range found {
		mode := int64(0o644)
		if e.Typeflag == tar.TypeDir {
			mode = 0o755
			if !e.ModTime.Equal(time.Unix(0, 0)) {
				t.Errorf("%s has time %s", name, e.ModTime)
			}
		}
		if e.Mode != mode || e.Uid != 0 || e.Gid != 0 || e.Uname != "" || e.Gname != "" {
			t.Errorf("%s: mode %o, owner %d:%d %s:%s", name, e.Mode, e.Uid, e.Gid, e.Uname, e.Gname)
		}
		for dir := filepath.Dir(strings.TrimSuffix(name, "/")); dir != "."; dir = filepath.Dir(dir) {
			if _, ok := found[dir+"/"]; !ok {
				t.Errorf("%s has no folder %s in the layers", name, dir)
			}
		}
	}
	for name, content := range smallSite() {
		if e := found["srv/www/"+name]; e.content != content {
			t.Errorf("%s has %d bytes, want %d", name, len(e.content), len(content))
		}
	}
}

func TestCompressedVariantsStandBesideWhatTheyShorten(t *testing.T) {
	files := smallSite()
	files["noise.txt"] = string(noise(4, 2000))
	image, report := mustBuild(t, newOptions(t, filetest.New(t, files)))
	found := entries(t, image, report)
	for name, want := range map[string]bool{
		"index.html": true, "articles/one/index.html": true, "favicon.svg": true, "articles/one/data.json": true,
		"font.woff2": false, "404.html": false, "robots.txt": false, "empty.txt": false, "noise.txt": false,
	} {
		variant, ok := found["srv/www/"+name+".gz"]
		if ok != want {
			t.Errorf("%s: variant %t, want %t", name, ok, want)
		}
		if !ok {
			continue
		}
		r, err := gzip.NewReader(strings.NewReader(variant.content))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || string(content) != files[name] {
			t.Errorf("%s: the variant holds something else (%v)", name, err)
		}
		if r.ModTime.Unix() != 0 || r.Name != "" {
			t.Errorf("%s: the variant's header has time %s, name %q", name, r.ModTime, r.Name)
		}
		if variant.layer != found["srv/www/"+name].layer {
			t.Errorf("%s: the variant is in the layer %s", name, variant.layer)
		}
	}
}

func TestAFilesTimeChangesWithItsContentAndOnlyWithIt(t *testing.T) {
	files := map[string]string{"index.html": "one", "a.html": "same", "b.html": "same"}
	o := newOptions(t, filetest.New(t, files))
	image, report := mustBuild(t, o)
	before := entries(t, image, report)
	files["index.html"] = "two"
	o.Site = filetest.New(t, files)
	image, report = mustBuild(t, o)
	after := entries(t, image, report)
	if before["srv/www/index.html"].ModTime.Equal(after["srv/www/index.html"].ModTime) {
		t.Error("a file of the same size and another content kept its time: nginx would keep its ETag")
	}
	if !before["srv/www/a.html"].ModTime.Equal(after["srv/www/b.html"].ModTime) {
		t.Error("files of the same content have different times")
	}
	if year := after["srv/www/index.html"].ModTime.UTC().Year(); year < 1970 || year > 2038 {
		t.Errorf("year %d does not fit into 32 bits", year)
	}
}

func TestAWarmAndADamagedCacheGiveTheImageOfAColdOne(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	_, cold := mustBuild(t, o)
	_, warm := mustBuild(t, o)
	if cold.Digest != warm.Digest || !warm.Layers[4].Unchanged {
		t.Errorf("cold %s, warm %s", cold.Digest, warm.Digest)
	}
	for _, sub := range []string{"blobs", "layers"} {
		names, err := os.ReadDir(filepath.Join(o.CacheDir, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Truncate(filepath.Join(o.CacheDir, sub, name.Name()), 20); err != nil {
				t.Fatal(err)
			}
		}
		image, damaged := mustBuild(t, o)
		if damaged.Digest != cold.Digest {
			t.Errorf("after damage to %s: %s, want %s", sub, damaged.Digest, cold.Digest)
		}
		entries(t, image, damaged)
	}
}

func TestOldLayersLeaveTheCacheAndUsedOnesStay(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	_, used := mustBuild(t, o)
	stale := filepath.Join(o.CacheDir, "blobs", "stale")
	filetest.Write(t, stale, "stale")
	old := time.Now().Add(-cacheLife - time.Hour)
	err := filepath.WalkDir(o.CacheDir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, again := mustBuild(t, o)
	if !again.Layers[1].Unchanged {
		t.Error("a layer that was still there was made again")
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the stale blob: %v", err)
	}
	image, third := mustBuild(t, o)
	if third.Digest != used.Digest || !third.Layers[4].Unchanged {
		t.Error("a used layer was removed")
	}
	entries(t, image, third)
}

func TestBuildsAtTheSameTimeShareACache(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	reports := make([]Report, 8)
	var group errgroup.Group
	for i := range reports {
		group.Go(func() (err error) {
			_, reports[i], err = Build(t.Context(), o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, r := range reports[1:] {
		if r.Digest != reports[0].Digest {
			t.Errorf("%s and %s", r.Digest, reports[0].Digest)
		}
	}
}

func TestTheBaseKeepsItsBytesWhateverItsMediaTypes(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.BaseDigest = "sha256:" + strings.Repeat("1", 64)
	image, docker := mustBuild(t, o)
	o.Base = newBase(t, "amd64", types.OCILayer)
	_, oci := mustBuild(t, o)
	if docker.Digest != oci.Digest {
		t.Errorf("the same base in two media types gives %s and %s", docker.Digest, oci.Digest)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	want, err := o.Base.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := want[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Layers[0].Digest != digest {
		t.Errorf("manifest %s with the base's layer %s, want %s", manifest.MediaType, manifest.Layers[0].Digest, digest)
	}
	for _, l := range manifest.Layers {
		if l.MediaType != types.OCILayer {
			t.Errorf("%s has the media type %s", l.Digest, l.MediaType)
		}
	}
}

func TestTheConfigurationIsTheSitesOwn(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.Hugo = hugoversion.Choice{Version: "0.148.1", From: "netlify.toml"}
	image, report := mustBuild(t, o)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if want := []string{"nginx", "-e", "stderr", "-g", "daemon off;"}; !slices.Equal(c.Entrypoint, want) || c.Cmd != nil {
		t.Errorf("entry point %q, command %q", c.Entrypoint, c.Cmd)
	}
	if c.StopSignal != "SIGQUIT" || c.User != "" || len(c.ExposedPorts) != 1 || !slices.Equal(c.Env, []string{"PATH=/usr/sbin:/usr/bin"}) {
		t.Errorf("stop signal %s, user %q, ports %v, environment %v", c.StopSignal, c.User, c.ExposedPorts, c.Env)
	}
	if !config.Created.Equal(commitTime) || config.Created.Location() != time.UTC {
		t.Errorf("created %s", config.Created)
	}
	base, err := o.Base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"maintainer": "upstream", "org.opencontainers.image.title": "blog", "org.opencontainers.image.revision": o.Revision,
		"org.opencontainers.image.source": o.Source, "org.opencontainers.image.created": "2026-03-01T11:30:00Z",
		"org.opencontainers.image.base.name": o.BaseName, "org.opencontainers.image.base.digest": base.String(),
		"net.tazlab.castle.hugo.version": "0.148.1", "net.tazlab.castle.hugo.from": "netlify.toml",
	}
	if toJSON(t, c.Labels) != toJSON(t, want) {
		t.Errorf("labels %s", toJSON(t, c.Labels))
	}
	if len(config.RootFS.DiffIDs) != len(report.Layers) || len(config.History) != len(report.Layers) {
		t.Errorf("%d diff IDs and %d steps of history for %d layers", len(config.RootFS.DiffIDs), len(config.History), len(report.Layers))
	}
	for i, l := range report.Layers {
		if config.RootFS.DiffIDs[i].String() != l.DiffID {
			t.Errorf("%s: diff ID %s, want %s", l.Name, l.DiffID, config.RootFS.DiffIDs[i])
		}
	}
}

func TestAHighPortNeedsNoRoot(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.Port = 8080
	image, _ := mustBuild(t, o)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := config.Config.ExposedPorts["8080/tcp"]; !ok || config.Config.User != "65532:65532" {
		t.Errorf("ports %v, user %q", config.Config.ExposedPorts, config.Config.User)
	}
}

func TestTheReportCountsWhatIsInTheImage(t *testing.T) {
	image, report := mustBuild(t, newOptions(t, filetest.New(t, smallSite())))
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for i, l := range report.Layers {
		files += l.Files
		if l.Digest != manifest.Layers[i].Digest.String() || l.Compressed != manifest.Layers[i].Size {
			t.Errorf("%s: %+v, manifest %+v", l.Name, l, manifest.Layers[i])
		}
	}
	if want := len(smallSite()) + 2; files != want { // two files of the server's configuration
		t.Errorf("%d files, want %d", files, want)
	}
	digest, err := image.Digest()
	if err != nil || report.Digest != digest.String() || report.Platform != "linux/amd64" {
		t.Errorf("%s %s, want %s (%v)", report.Digest, report.Platform, digest, err)
	}
}

func TestAnIndexIsSortedByPlatformAndHoldsEachOnce(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	amd, _ := mustBuild(t, o)
	o.Base = newBase(t, "arm64", types.OCILayer)
	arm, report := mustBuild(t, o)
	if !report.Layers[4].Unchanged {
		t.Error("the second platform made the site's layers again")
	}
	one, err := Index(inputs.Inputs{}, amd, arm)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Index(inputs.Inputs{}, arm, amd)
	if err != nil {
		t.Fatal(err)
	}
	first, err := one.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := two.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("the order of the arguments shows:\n%s\n%s", first, second)
	}
	manifest, err := one.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIImageIndex || manifest.Manifests[0].Platform.String() != "linux/amd64" || manifest.Manifests[1].Platform.String() != "linux/arm64" {
		t.Errorf("%s", first)
	}
	if _, err := Index(inputs.Inputs{}, amd, amd); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("twice the same platform: %v", err)
	}
	if _, err := Index(inputs.Inputs{}); err == nil {
		t.Error("no images: no error")
	}
}

func TestOptionsThatCannotWorkAreRefusedAllAtOnce(t *testing.T) {
	_, _, err := Build(t.Context(), Options{Port: 70000, Headers: siteheaders.Headers{ContentSecurityPolicy: "default-src x\nEvil: 1"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Base", "Site", "CacheDir", "70000", "Created", "Content-Security-Policy"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in: %v", want, err)
		}
	}
}

func TestABaseOfAnotherOperatingSystemIsRefused(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.Base = newBase(t, "", types.OCILayer)
	if _, _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "platform") {
		t.Errorf("got %v", err)
	}
}

func TestACancelledBuildEndsAndLeavesNoHalfLayer(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Build(ctx, o); err == nil {
		t.Fatal("no error")
	}
	left, err := filepath.Glob(filepath.Join(o.CacheDir, "new-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v (%v)", left, err)
	}
}

func TestAnImageSaysWhatItWasMadeFromInLabelsAndAnnotations(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	_, plain := mustBuild(t, o)
	o.Inputs = inputs.Inputs{Commit: "5d6e7f80", Path: "blog"}
	image, report := mustBuild(t, o)
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !inputs.OfManifest(manifest).Same(o.Inputs) || config.Config.Labels[inputs.KeyDigest] != o.Inputs.Annotations()[inputs.KeyDigest] {
		t.Errorf("manifest %s, labels %v", manifest, config.Config.Labels)
	}
	if plain.Digest == report.Digest {
		t.Error("the inputs are not in the digest")
	}
	index, err := Index(o.Inputs, image)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.RawManifest(); err != nil || !inputs.OfManifest(manifest).Same(o.Inputs) {
		t.Errorf("index %s, %v", manifest, err)
	}
}

// An engine names the image that it first pulled a layer from, in a base that has no history of its own.
func TestWhatTheEngineSaysOfItsPullIsNotInTheImage(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.BaseDigest = "sha256:" + strings.Repeat("ab", 32)
	var digests [2]string
	for i, from := range []string{"pulled from nginx:1@sha256:aa", "pulled from golang:1@sha256:bb"} {
		config, err := o.Base.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config = config.DeepCopy()
		config.History = []v1.History{{Created: v1.Time{Time: time.Unix(int64(i), 0)}, CreatedBy: from, Comment: "buildkit.exporter.image.v0"}}
		if o.Base, err = mutate.ConfigFile(o.Base, config); err != nil {
			t.Fatal(err)
		}
		_, report := mustBuild(t, o)
		digests[i] = report.Digest
	}
	if digests[0] != digests[1] {
		t.Errorf("got %q", digests)
	}
}
