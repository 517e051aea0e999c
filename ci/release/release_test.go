package release

import (
	"crypto/elliptic"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/base/version"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

const password = "canary-51f0-password"

var key, otherKey = sync.OnceValue(newKey), sync.OnceValue(newKey)

func newKey() *cosign.Signer {
	private, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		panic(err)
	}
	signer, err := cosign.NewSigner(string(private), password)
	if err != nil {
		panic(err)
	}
	return signer
}

// compiled is a program with castle's name and one module in it, for this machine: the folder OS_ARCH/castle.
func compiled(t *testing.T, module string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	source := filetest.New(t, map[string]string{
		"go.mod":     "module " + module + "\n\ngo 1.26\n\nrequire example.org/dep v1.2.3\n\nreplace example.org/dep => ./dep\n",
		"main.go":    "package main\n\nimport \"example.org/dep\"\n\nfunc main() { dep.Do() }\n",
		"dep/go.mod": "module example.org/dep\n\ngo 1.26\n",
		"dep/dep.go": "package dep\n\nfunc Do() {}\n",
	})
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(folder, runtime.GOOS+"_"+runtime.GOARCH, "castle"), ".")
	build.Dir, build.Env = source, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// imageOf is an image for a platform as an engine exports it: here a folder, which is read alike.
func imageOf(t *testing.T, architecture string) string {
	t.Helper()
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "image")
	if err := ocilayout.Write(folder, image); err != nil {
		t.Fatal(err)
	}
	return folder
}

// rehearsal are the options of a release into a registry of its own.
func rehearsal(t *testing.T) Options {
	t.Helper()
	handler, err := registry.New(registry.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	programs := compiled(t, hostProgram)
	return Options{
		Version: "v" + version.Castle, Commit: strings.Repeat("c", 40), Source: "https://example.org/castle", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Builder: "https://example.org/castle/release.yaml", Bases: []string{"docker.io/library/golang:1.26.4@sha256:" + strings.Repeat("b", 64)},
		Programs: programs, Inside: programs, Images: []string{imageOf(t, "amd64"), imageOf(t, "arm64")},
		Image:    strings.TrimPrefix(server.URL, "http://") + "/me/castle",
		Registry: imagepush.Access{Pause: time.Millisecond, Tries: 3, Timeout: 20 * time.Second},
		Signer:   key(), Out: filepath.Join(t.TempDir(), "dist"), Rehearsal: true,
	}
}

func mustMake(t *testing.T, o Options) Pushed {
	t.Helper()
	pushed, err := Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

func verifyOptions(o Options) VerifyOptions {
	return VerifyOptions{Folder: o.Out, Version: o.Version, Key: o.Signer.Verifier(), Registry: o.Registry}
}

func mustVerify(t *testing.T, o VerifyOptions) Verified {
	t.Helper()
	seen, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestARehearsedReleaseIsVerifiedFromItsRegistryAndFolder(t *testing.T) {
	o := rehearsal(t)
	pushed := mustMake(t, o)
	seen := mustVerify(t, verifyOptions(o))
	if seen.Failed() || len(seen.Checks) != 9 || seen.Version != o.Version || seen.Commit != o.Commit || seen.Builder != o.Builder {
		t.Errorf("%s%+v", seen.Text(), seen)
	}
	if len(pushed.Platforms) != 2 || pushed.Tag != o.Version {
		t.Errorf("%+v", pushed)
	}
	file := "castle_" + runtime.GOOS + "_" + runtime.GOARCH
	list, err := os.ReadFile(filepath.Join(o.Out, file+sbomSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{`"name":"` + file + `"`, "pkg:golang/example.org/dep@v1.2.3", "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go")} {
		if !strings.Contains(string(list), words) {
			t.Errorf("no %q in %s", words, list)
		}
	}
	// What a user does without castle.
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", checksumsFile)
	check.Dir = o.Out
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestASecondTryOfAReleaseTakesTheImageThatIsThere(t *testing.T) {
	o := rehearsal(t)
	first := mustMake(t, o)
	o.Images, o.Out = []string{imageOf(t, "amd64"), imageOf(t, "arm64")}, filepath.Join(t.TempDir(), "dist") // an engine's other bytes
	if second := mustMake(t, o); second.Digest != first.Digest {
		t.Errorf("%+v, then %+v", first, second)
	}
	if seen := mustVerify(t, verifyOptions(o)); seen.Failed() {
		t.Error(seen.Text())
	}
	o.Commit, o.Out = strings.Repeat("d", 40), filepath.Join(t.TempDir(), "dist")
	if _, err := Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a tag is never moved") {
		t.Errorf("another commit under the same version: %v", err)
	}
}

func TestWhatIsWrongWithAReleaseIsFound(t *testing.T) {
	made := rehearsal(t)
	mustMake(t, made)
	file := "castle_" + runtime.GOOS + "_" + runtime.GOARCH
	for name, c := range map[string]struct {
		spoil       func(t *testing.T, folder string, o *VerifyOptions)
		check, says string
	}{
		"a program was changed": {
			func(t *testing.T, folder string, _ *VerifyOptions) { appendTo(t, folder, file) }, "files", file + " has the SHA-256",
		},
		"the checksums were changed with it": {
			func(t *testing.T, folder string, _ *VerifyOptions) {
				appendTo(t, folder, file)
				sums, err := sumFolder(folder, checksumsFile, signatureFile)
				if err != nil {
					t.Fatal(err)
				}
				filetest.Write(t, filepath.Join(folder, checksumsFile), sums)
			}, "signature of checksums.txt", "what it signs was changed",
		},
		"a file was added": {func(t *testing.T, folder string, _ *VerifyOptions) {
			filetest.Write(t, filepath.Join(folder, "castle_plan9"), "")
		}, "files", "castle_plan9 is in no list"},
		// What the holder of the key signed by mistake.
		"an SBOM is that of another program": {
			func(t *testing.T, folder string, _ *VerifyOptions) {
				sum, err := sumOf(filepath.Join(folder, file))
				if err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(filepath.Join(folder, file+sbomSuffix))
				if err != nil {
					t.Fatal(err)
				}
				filetest.Write(t, filepath.Join(folder, file+sbomSuffix), strings.ReplaceAll(string(text), `"checksumValue":"`+sum, `"checksumValue":"`+strings.Repeat("0", 64)))
				resign(t, folder)
			}, "SBOMs", "describes another program",
		},
		"the provenance says nothing of a program": {
			func(t *testing.T, folder string, _ *VerifyOptions) { appendTo(t, folder, file); resign(t, folder) }, "provenance", "says nothing of " + file,
		},
		"the provenance is a statement of another kind": {
			func(t *testing.T, folder string, _ *VerifyOptions) {
				envelope, err := key().Attest(cosign.Statement{PredicateType: cosign.PredicateSPDX, Predicate: []byte("{}")})
				if err != nil {
					t.Fatal(err)
				}
				filetest.Write(t, filepath.Join(folder, provenanceFile), string(envelope))
				resign(t, folder)
			}, "provenance", "of the kind " + cosign.PredicateSPDX,
		},
		"an SBOM is missing":       {func(t *testing.T, folder string, _ *VerifyOptions) { remove(t, folder, file+sbomSuffix) }, "SBOMs", "missing"},
		"the provenance is gone":   {func(t *testing.T, folder string, _ *VerifyOptions) { remove(t, folder, provenanceFile) }, "provenance", "missing"},
		"the signature is gone":    {func(t *testing.T, folder string, _ *VerifyOptions) { remove(t, folder, signatureFile) }, "signature of checksums.txt", "missing"},
		"the key is another":       {func(_ *testing.T, _ string, o *VerifyOptions) { o.Key = otherKey().Verifier() }, "signature of checksums.txt", "not made with this key"},
		"it is of another version": {func(_ *testing.T, _ string, o *VerifyOptions) { o.Version = "v9.9.9" }, "provenance", "not v9.9.9"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "dist")
			if err := os.CopyFS(folder, os.DirFS(made.Out)); err != nil {
				t.Fatal(err)
			}
			o := verifyOptions(made)
			o.Folder = folder
			c.spoil(t, folder, &o)
			seen := mustVerify(t, o)
			found := ""
			for _, check := range seen.Checks {
				if check.Name == c.check {
					found = check.Problem
				}
			}
			if !seen.Failed() || !strings.Contains(found, c.says) || !strings.Contains(seen.Text(), "Not verified") {
				t.Errorf("%s says %q, want %q:\n%s", c.check, found, c.says, seen.Text())
			}
		})
	}
}

func TestAnImageThatIsNotTheReleasesIsFound(t *testing.T) {
	o := rehearsal(t)
	mustMake(t, o)
	moveTag(t, o)
	seen := mustVerify(t, verifyOptions(o))
	if !seen.Failed() || !strings.Contains(seen.Text(), "the tag was moved") {
		t.Error(seen.Text())
	}
	files := verifyOptions(o)
	files.FilesOnly = true
	if seen := mustVerify(t, files); seen.Failed() || len(seen.Checks) != 5 {
		t.Errorf("the files alone: %s", seen.Text())
	}
}

func TestAllThatKeepsAReleaseFromBeingMadeIsSaidAtOnce(t *testing.T) {
	o := rehearsal(t)
	o.Version, o.Rehearsal, o.Commit, o.Source, o.Builder, o.Signer, o.Images = "v9.9.9", false, "c0ffee", "https://me:token@example.org/castle", "", nil, nil
	if err := os.MkdirAll(filepath.Join(o.Out, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Make(t.Context(), o)
	if err == nil {
		t.Fatal("it was made")
	}
	expected := []string{"v9.9.9", "c0ffee", "without credentials", "builder", "cosign generate-key-pair", "has an image", "not empty"}
	if strings.HasSuffix(version.Castle, "-dev") { // but in the commit of a release
		expected = append(expected, "rehearse")
	}
	for _, words := range expected {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("no %q in %v", words, err)
		}
	}
}

func TestAProgramThatIsNotWhatItsFolderSaysIsRefused(t *testing.T) {
	o := rehearsal(t)
	o.Programs = compiled(t, "example.org/another")
	if _, err := Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "example.org/another") {
		t.Errorf("another program: %v", err)
	}
	o.Programs = compiled(t, hostProgram)
	if err := os.Rename(filepath.Join(o.Programs, runtime.GOOS+"_"+runtime.GOARCH), filepath.Join(o.Programs, "plan9_mips")); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "was compiled for "+runtime.GOOS) {
		t.Errorf("another platform: %v", err)
	}
	o.Programs = t.TempDir()
	if _, err := Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "holds no programs") {
		t.Errorf("none: %v", err)
	}
}

func moveTag(t *testing.T, o Options) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(imageOf(t, "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(o.Image + ":" + o.Version)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
}

// resign sums and signs the files as they are.
func resign(t *testing.T, folder string) {
	t.Helper()
	sums, err := sumFolder(folder, checksumsFile, signatureFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := key().Sign([]byte(sums))
	if err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(folder, checksumsFile), sums)
	filetest.Write(t, filepath.Join(folder, signatureFile), made)
}

func appendTo(t *testing.T, folder, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(folder, name), string(text)+"\n")
}

func remove(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}
