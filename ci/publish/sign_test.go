package publish_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/imagesign"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// signed are the options of a publish that signs and attaches an SBOM.
func signed(t *testing.T, w *publishtest.World, digits string, image ocilayout.Artifact) publish.Options {
	t.Helper()
	o := w.Options(t, digits, image)
	o.Signer, o.SBOM = publishtest.Keys().Signer, true
	return o
}

func TestAnImageIsSignedBeforeTheManifestNamesIt(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	result := publishtest.MustRun(t, signed(t, w, "1a2b3c4", publishtest.NewImage(t)))

	events := w.TakeEvents()
	push := slices.IndexFunc(events, publishtest.IsGitPush)
	beside := "/v2/me/blog/manifests/" + strings.Replace(result.Image.Digest, ":", "-", 1)
	for _, suffix := range []string{".sig", ".att"} {
		// What was put was also read again before the push was begun.
		put := slices.Index(events, "registry PUT "+beside+suffix)
		if read := slices.Index(events[put+1:], "registry GET "+beside+suffix); put < 0 || read < 0 || put+1+read > push {
			t.Errorf("%s was put at %d, read %d requests later, and the push to Git was %d:\n%s", suffix, put, read, push, strings.Join(events, "\n"))
		}
	}
	image := imagesign.Image{Registry: w.Access(), Repository: w.Image(), Digest: result.Image.Digest}
	if err := imagesign.Verify(t.Context(), image, publishtest.Keys().Signer.Verifier()); err != nil {
		t.Error(err)
	}
	if s := result.Image.Signature; s == nil || s.AlreadyThere || s.SBOM == nil || s.SBOM.AlreadyThere || s.SBOM.Parts < 3 ||
		s.Key != publishtest.Keys().Signer.Verifier().Fingerprint() {
		t.Errorf("%+v", s)
	}
}

func TestAnImageThatIsThereIsSignedOnce(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	image := publishtest.NewImage(t)
	publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))
	before := w.Manifest(t)

	result := publishtest.MustRun(t, signed(t, w, "1a2b3c4", image))
	if s := result.Image.Signature; !result.Image.AlreadyThere || !result.Changed || result.GitOps.Changed || s.AlreadyThere || s.SBOM.AlreadyThere {
		t.Errorf("%+v, %+v", result, s)
	}
	if !strings.Contains(result.Text(), "Image signed; the manifest named it already") {
		t.Error(result.Text())
	}
	w.TakeEvents()
	result = publishtest.MustRun(t, signed(t, w, "1a2b3c4", image))
	if s := result.Image.Signature; result.Changed || !s.AlreadyThere || !s.SBOM.AlreadyThere {
		t.Errorf("%+v, %+v", result, s)
	}
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
	if w.Manifest(t) != before {
		t.Error("the manifest changed")
	}
}

// Whoever may push to the registry may say of an image what it was made from.
func TestAnotherImageOfTheSameInputsIsNotSigned(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	pushed, built := madeFrom(t, "nginx"), madeFrom(t, "nginx")
	publishtest.MustRun(t, w.Options(t, "1a2b3c4", pushed))
	w.MustStay(t, func() {
		_, err := publish.Run(t.Context(), signed(t, w, "1a2b3c4", built))
		publishtest.MustSay(t, err, "the manifest is untouched", "is its own word", publishtest.DigestOf(t, pushed), publishtest.DigestOf(t, built), "an empty one")
	})
	image := imagesign.Image{Registry: w.Access(), Repository: w.Image(), Digest: publishtest.DigestOf(t, pushed)}
	if err := imagesign.Verify(t.Context(), image, publishtest.Keys().Signer.Verifier()); err == nil {
		t.Error("it is signed")
	}
}

// Another build of the same inputs is the published image, where the key has signed that one.
func TestAnotherBuildOfASignedImageLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	published, again := madeFrom(t, "nginx"), madeFrom(t, "nginx")
	publishtest.MustRun(t, signed(t, w, "1a2b3c4", published))
	result := publishtest.MustRun(t, signed(t, w, "1a2b3c4", again))
	if result.Image.Digest != publishtest.DigestOf(t, published) || result.Image.BuildDigest != publishtest.DigestOf(t, again) {
		t.Fatalf("%+v", result.Image)
	}
	image := imagesign.Image{Registry: w.Access(), Repository: w.Image(), Digest: publishtest.DigestOf(t, published)}
	if err := imagesign.Verify(t.Context(), image, publishtest.Keys().Signer.Verifier()); err != nil {
		t.Error(err)
	}
	if statement, err := imagesign.Attestation(t.Context(), image, publishtest.Keys().Signer.Verifier(), cosign.PredicateSPDX); err != nil || !statement.About(image.Digest) {
		t.Errorf("%+v, %v", statement, err)
	}
}

func TestTheManifestStaysWhereTheImageCannotBeSigned(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".sig", ".att"} {
		w := publishtest.New(t)
		w.SetAnswer(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, suffix) {
				return false
			}
			rw.WriteHeader(http.StatusForbidden)
			return true
		})
		w.MustStay(t, func() {
			_, err := publish.Run(t.Context(), signed(t, w, "1a2b3c4", publishtest.NewImage(t)))
			publishtest.MustSay(t, err, "the manifest is untouched", "is in the registry", "sign it", suffix, "refused access (403)")
		})
	}
}

func TestADryRunSignsNothing(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := signed(t, w, "1a2b3c4", publishtest.NewImage(t))
	o.DryRun = true
	publishtest.MustRun(t, o)
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
}

func TestAnSBOMWithoutAKeyIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.SBOM = true
	_, err := publish.Run(t.Context(), o)
	publishtest.MustSay(t, err, "SBOM", "key")
	if events := w.TakeEvents(); len(events) != 0 {
		t.Errorf("%v", events)
	}
}

func TestTheSigningKeyIsNowhereButInMemory(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	result := publishtest.MustRun(t, signed(t, w, "1a2b3c4", publishtest.NewImage(t)))
	mustHoldNoCanary(t, "a report", result.Text()+result.Markdown())
	for _, dir := range []string{w.RegistryDir, w.GitDir} {
		if searched := searchFolder(t, dir); searched == 0 {
			t.Errorf("%s holds no file", dir)
		}
	}
	if key := publishtest.Keys().Private; canaryIn("x"+key+"x") == "" || canaryIn(publishtest.CosignPassword) == "" {
		t.Error("the search does not know the key, or its password")
	}
}
