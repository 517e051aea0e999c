package verify_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/imagesign"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/verify"
)

// published is a world with a signed image that has an SBOM.
func published(t *testing.T) (*publishtest.World, report.Result) {
	t.Helper()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.Signer, o.SBOM = publishtest.Keys().Signer, true
	return w, publishtest.MustRun(t, o)
}

func options(w *publishtest.World) verify.Options {
	return verify.Options{
		Image: w.Image(), Registry: w.Access(), Repository: w.Repository(), Update: gitops.UpdateRequest{Path: publishtest.ManifestPath},
		Key: publishtest.Keys().Signer.Verifier(), SBOM: true,
	}
}

func mustRun(t *testing.T, o verify.Options) verify.Result {
	t.Helper()
	result, err := verify.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// problems are what was found, by the check that found it.
func problems(r verify.Result) map[string]string {
	found := map[string]string{}
	for _, check := range r.Checks {
		if check.Problem != "" {
			found[check.Name] = check.Problem
		}
	}
	return found
}

// beside reads what stands beside an image, and put writes it anew past castle, as somebody with the registry's password may.
func beside(t *testing.T, w *publishtest.World, digest, suffix string) []imagepush.Attachment {
	t.Helper()
	found, err := imagepush.Attachments(t.Context(), w.Access(), w.Image()+"@"+digest, suffix)
	if err != nil || len(found) == 0 {
		t.Fatalf("%d attachments, %v", len(found), err)
	}
	return found
}

func put(t *testing.T, w *publishtest.World, digest, suffix string, all ...imagepush.Attachment) {
	t.Helper()
	image := v1.Image(mutate.MediaType(empty.Image, types.OCIManifestSchema1))
	for _, one := range all {
		var err error
		if image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(one.Content, types.MediaType(one.MediaType)), Annotations: one.Annotations}); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Write(w.RemoteName(t, ":"+strings.Replace(digest, ":", "-", 1)+suffix), image, w.RemoteAuth()); err != nil {
		t.Fatal(err)
	}
}

func TestASignedImageWithItsSBOMIsVerified(t *testing.T) {
	t.Parallel()
	w, done := published(t)
	result := mustRun(t, options(w))
	if result.Failed() || result.Digest != done.Image.Digest || result.Parts != done.Image.Signature.SBOM.Parts || len(result.Checks) != 4 {
		t.Errorf("%+v", result)
	}
	for _, text := range []string{result.Text(), result.Markdown()} {
		if !strings.Contains(text, "Verified: "+w.Image()+":blog-1a2b3c4") || !strings.Contains(text, done.Image.Digest) {
			t.Error(text)
		}
	}
}

func TestAPinnedDigestIsTheOneThatCounts(t *testing.T) {
	t.Parallel()
	w, done := published(t)
	w.CommitByHand(t, "Pin the blog", strings.Replace(w.Manifest(t), ":blog-1a2b3c4", ":blog-1a2b3c4@"+done.Image.Digest, 1))
	if result := mustRun(t, options(w)); result.Failed() || !result.Pinned {
		t.Errorf("%+v", result)
	}
	w.Overwrite(t, "blog-1a2b3c4", publishtest.NewImage(t))
	// The cluster still runs the one that was signed.
	if found := problems(mustRun(t, options(w))); len(found) != 1 || !strings.Contains(found["digest"], "pins "+done.Image.Digest) {
		t.Errorf("%v", found)
	}
}

func TestWhatIsMissingOrWrongIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*testing.T, *publishtest.World, report.Result, *verify.Options)
		says  map[string]string // by check
	}{
		"the key is another one": {
			func(_ *testing.T, _ *publishtest.World, _ report.Result, o *verify.Options) {
				o.Key = publishtest.OtherKeys().Signer.Verifier()
			},
			map[string]string{"signature": "not made with this key", "SBOM": "not made with this key"},
		},
		"the signed text was changed": {
			func(t *testing.T, w *publishtest.World, r report.Result, _ *verify.Options) {
				one := beside(t, w, r.Image.Digest, cosign.SignatureSuffix)[0]
				one.Content = []byte(strings.Replace(string(one.Content), "me/blog", "me/blag", 1))
				put(t, w, r.Image.Digest, cosign.SignatureSuffix, one)
			},
			map[string]string{"signature": "what it signs was changed"},
		},
		"the signature was changed": {
			func(t *testing.T, w *publishtest.World, r report.Result, _ *verify.Options) {
				one := beside(t, w, r.Image.Digest, cosign.SignatureSuffix)[0]
				made := []byte(one.Annotations[cosign.SignatureAnnotation])
				made[20] = map[bool]byte{true: 'A', false: 'B'}[made[20] != 'A']
				one.Annotations = map[string]string{cosign.SignatureAnnotation: string(made)}
				put(t, w, r.Image.Digest, cosign.SignatureSuffix, one)
			},
			map[string]string{"signature": "not made with this key"},
		},
		"the signature and the SBOM are those of another image": {
			func(t *testing.T, w *publishtest.World, r report.Result, _ *verify.Options) {
				other := w.Options(t, "5d6e7f8", publishtest.NewImage(t))
				second := publishtest.MustRun(t, other)
				for _, suffix := range []string{cosign.SignatureSuffix, cosign.AttestationSuffix} {
					put(t, w, second.Image.Digest, suffix, beside(t, w, r.Image.Digest, suffix)...)
				}
			},
			map[string]string{"signature": "that of another image", "SBOM": "about another image"},
		},
		"there is neither": {
			func(t *testing.T, w *publishtest.World, _ report.Result, _ *verify.Options) {
				publishtest.MustRun(t, w.Options(t, "5d6e7f8", publishtest.NewImage(t)))
			},
			map[string]string{"signature": "there is no signature", "SBOM": "there is no attestation"},
		},
		"there is no SBOM": {
			func(t *testing.T, w *publishtest.World, _ report.Result, _ *verify.Options) {
				o := w.Options(t, "5d6e7f8", publishtest.NewImage(t))
				o.Signer = publishtest.Keys().Signer
				publishtest.MustRun(t, o)
			},
			map[string]string{"SBOM": "there is no attestation"},
		},
		"the SBOM was changed": {
			func(t *testing.T, w *publishtest.World, r report.Result, _ *verify.Options) {
				one := beside(t, w, r.Image.Digest, cosign.AttestationSuffix)[0]
				var envelope map[string]any
				if err := json.Unmarshal(one.Content, &envelope); err != nil {
					t.Fatal(err)
				}
				payload := envelope["payload"].(string)
				envelope["payload"] = payload[:len(payload)/2] + payload[len(payload)/2+4:]
				one.Content, _ = json.Marshal(envelope)
				put(t, w, r.Image.Digest, cosign.AttestationSuffix, one)
			},
			map[string]string{"SBOM": "what it signs was changed"},
		},
		"the SBOM is none": {
			func(t *testing.T, w *publishtest.World, r report.Result, _ *verify.Options) {
				envelope, err := publishtest.Keys().Signer.Attest(cosign.Statement{
					Subject: []cosign.Subject{cosign.SubjectOf("blog", r.Image.Digest)}, PredicateType: cosign.PredicateSPDX, Predicate: []byte(`{}`),
				})
				if err != nil {
					t.Fatal(err)
				}
				put(t, w, r.Image.Digest, cosign.AttestationSuffix, imagepush.Attachment{MediaType: cosign.AttestationType, Content: envelope})
			},
			map[string]string{"SBOM": "no SPDX document"},
		},
		"the tag was moved": {
			func(t *testing.T, w *publishtest.World, _ report.Result, _ *verify.Options) {
				w.Overwrite(t, "blog-1a2b3c4", publishtest.NewImage(t))
			},
			map[string]string{"digest": "published sha256:", "signature": "there is no signature", "SBOM": "there is no attestation"},
		},
		"the tag was written by hand, without a digest": {
			func(t *testing.T, w *publishtest.World, _ report.Result, _ *verify.Options) {
				w.Overwrite(t, "blog-hurry", publishtest.NewImage(t))
				w.CommitByHand(t, "Hurry", strings.Replace(w.Manifest(t), "blog-1a2b3c4", "blog-hurry", 1))
			},
			map[string]string{"digest": "says of no digest", "signature": "there is no signature", "SBOM": "there is no attestation"},
		},
		"the registry does not have the tag": {
			func(t *testing.T, w *publishtest.World, _ report.Result, _ *verify.Options) {
				w.CommitByHand(t, "Hurry", strings.Replace(w.Manifest(t), "blog-1a2b3c4", "blog-never", 1))
			},
			map[string]string{"image": "does not have"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, done := published(t)
			o := options(w)
			c.spoil(t, w, done, &o)
			result := mustRun(t, o)
			found := problems(result)
			if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(c.says)); !slices.Equal(got, want) {
				t.Errorf("found %v, want something of %v", found, want)
			}
			for check, words := range c.says {
				if !strings.Contains(found[check], words) {
					t.Errorf("%s: no %q in %q", check, words, found[check])
				}
			}
			if result.Failed() != (len(c.says) > 0) || result.Failed() != strings.Contains(result.Text(), "Not verified") {
				t.Errorf("%s", result.Text())
			}
		})
	}
}

// As where two teams sign, or somebody put something else there.
func TestWhatElseStandsBesideTheImageIsNoHarm(t *testing.T) {
	t.Parallel()
	w, done := published(t)
	digest := done.Image.Digest
	image := imagesign.Image{Registry: w.Access(), Repository: w.Image(), Digest: digest}
	if already, err := imagesign.Sign(t.Context(), image, publishtest.OtherKeys().Signer); already || err != nil {
		t.Fatalf("%t, %v", already, err)
	}
	all := append([]imagepush.Attachment{{MediaType: "text/plain", Content: []byte("no signature")}}, beside(t, w, digest, cosign.SignatureSuffix)...)
	put(t, w, digest, cosign.SignatureSuffix, all...)
	for _, pair := range []publishtest.Pair{publishtest.Keys(), publishtest.OtherKeys()} {
		o := options(w)
		o.Key, o.SBOM = pair.Signer.Verifier(), false
		if result := mustRun(t, o); result.Failed() {
			t.Errorf("%+v", result)
		}
	}
}
