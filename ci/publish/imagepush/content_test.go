package imagepush

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
	"tazlab.net/castle/ci/test/tell"
)

// site is an image like castle's, of one platform.
type site struct {
	page   string
	level  int // of compression
	labels map[string]string
}

var siteInputs = inputs.Inputs{Commit: "5d6e7f80", Base: "nginx"}

func (s site) image(t *testing.T) v1.Image {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, content := range []string{"nginx", strings.Repeat("a page: "+s.page, 100)} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(s.level),
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	labels := map[string]string{inputs.KeySource: "https://example.org/blog", inputs.Key: "…"}
	for key, value := range s.labels {
		labels[key] = value
	}
	image, err := mutate.Config(image, v1.Config{Entrypoint: []string{"nginx"}, User: "65532", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	return mutate.Annotations(image, siteInputs.Annotations()).(v1.Image)
}

// overPlatforms is an index over the same image for two platforms.
func overPlatforms(images ...v1.Image) v1.ImageIndex {
	var children []mutate.IndexAddendum
	for i, architecture := range []string{"amd64", "arm64"}[:len(images)] {
		children = append(children, mutate.IndexAddendum{
			Add: images[i], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, children...), types.OCIImageIndex)
	return mutate.Annotations(index, siteInputs.Annotations()).(v1.ImageIndex)
}

func TestAnotherBuildWithTheSameContentIsTheImage(t *testing.T) {
	there := site{page: "one", level: gzip.BestSpeed, labels: map[string]string{
		inputs.KeySource: "https://example.org/fork", inputs.KeyHugoFrom: "--hugo",
	}}
	built := site{page: "one", level: gzip.BestCompression}
	for name, pair := range map[string][2]ocilayout.Artifact{
		"an image": {there.image(t), built.image(t)},
		"an index": {overPlatforms(there.image(t), built.image(t)), overPlatforms(built.image(t), built.image(t))},
	} {
		for _, compareOnly := range []bool{false, true} {
			w := newWorld(t)
			mustPush(t, w.options(newLayout(t, pair[0]), "v1"))
			w.forget()
			o := w.options(newLayout(t, pair[1]), "v1")
			o.compareOnly = compareOnly
			o.Known = func(context.Context, string, string) (bool, error) {
				t.Error("what can be compared needs nobody's word")
				return false, nil
			}
			result := mustPush(t, o)
			if !result.AlreadyThere || result.Bytes != 0 ||
				result.Digest != digestOf(t, pair[0]) || result.BuildDigest != digestOf(t, pair[1]) {
				t.Errorf("%s: %+v", name, result)
			}
			if writes := w.writes(); len(writes) != 0 {
				t.Errorf("%s: requests that write: %v", name, writes)
			}
			w.mustHave(t, "v1", digestOf(t, pair[0]))
		}
	}
}

// forgery is what somebody with the registry's password makes of castle's image: its annotations copied, the rest his.
type forgery struct {
	of               v1.Image
	config, manifest func(string) string
}

// push pushes it past castle.
func (f forgery) push(t *testing.T, w *world, tag string) {
	t.Helper()
	auth := remote.WithAuth(&authn.Basic{Username: username, Password: password})
	ref, err := w.access().parseTag(w.host() + "/team/blog:" + tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := f.of.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := f.of.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := f.of.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if f.config != nil {
		config = mustChange(t, f.config, config)
	}
	manifest = manifest.DeepCopy()
	manifest.Config.Size = int64(len(config))
	if manifest.Config.Digest, _, err = v1.SHA256(bytes.NewReader(config)); err != nil {
		t.Fatal(err)
	}
	for _, blob := range append(layers, static.NewLayer(config, types.OCIConfigJSON)) {
		if err := remote.WriteLayer(ref.Context(), blob, auth); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if f.manifest != nil {
		text = mustChange(t, f.manifest, text)
	}
	if err := remote.Put(ref, rawManifest(text), auth); err != nil {
		t.Fatal(err)
	}
}

func mustChange(t *testing.T, edit func(string) string, text []byte) []byte {
	t.Helper()
	changed := edit(string(text))
	if changed == string(text) {
		t.Fatalf("the edit changes nothing in %s", text)
	}
	return []byte(changed)
}

type rawManifest []byte

func (m rawManifest) RawManifest() ([]byte, error)        { return m, nil }
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func replace(old, new string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, new, 1) }
}

// Whoever may push to the registry can copy the annotation that says what an image was made from.
func TestAnImageThatOnlySaysThatItWasMadeFromTheSameInputsIsRefused(t *testing.T) {
	ours, evil := site{page: "one"}.image(t), site{page: "evil"}.image(t)
	layer := func(image v1.Image) string {
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		return manifest.Layers[1].Digest.String()
	}
	for name, forged := range map[string]forgery{
		"other content":                         {of: evil},
		"a layer that the config does not name": {of: ours, manifest: replace(layer(ours), layer(evil))},
		"one layer more": {of: ours, manifest: replace(`"layers":[`,
			`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"`+layer(evil)+`","size":1},`)},
		"another command":           {of: ours, config: replace(`["nginx"]`, `["sh"]`)},
		"another user":              {of: ours, config: replace(`"User":"65532"`, `"User":"0"`)},
		"a variable":                {of: ours, config: replace(`"User":`, `"Env":["LD_PRELOAD=/evil.so"],"User":`)},
		"another label":             {of: ours, config: replace(`"Labels":{`, `"Labels":{"evil":"yes",`)},
		"a key twice":               {of: ours, config: replace(`"config":{`, `"config":{"Cmd":["evil"]},"config":{`)},
		"a key in another spelling": {of: ours, config: replace(`"config":{`, `"Config":{"Cmd":["evil"]},"config":{`)},
		"a key of tomorrow":         {of: ours, config: replace(`{`, `{"boot":"evil",`)},
		"an annotation":             {of: ours, manifest: replace(`"annotations":{`, `"annotations":{"evil":"yes",`)},
		"the layers twice":          {of: ours, manifest: replace(`"layers":[`, `"layers":[],"layers":[`)},
		"layers from elsewhere":     {of: ours, manifest: replace(`"size":`, `"urls":["https://evil.example"],"size":`)},
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "an image pushed first by somebody else, with castle's annotation: %s", name)
			w := newWorld(t)
			mustPush(t, w.options(newLayout(t, evil), "evil"))
			forged.push(t, w, "v1")
			there, err := Lookup(t.Context(), w.access(), w.host()+"/team/blog:v1")
			if err != nil {
				t.Fatal(err)
			}
			nobody := func(context.Context, string, string) (bool, error) { return false, nil }
			for _, who := range []Known{nil, nobody} {
				w.forget()
				o := w.options(newLayout(t, ours), "v1")
				o.Known = who
				_, err = Push(t.Context(), o)
				var conflict *TagConflictError
				if !errors.As(err, &conflict) || !conflict.Unknown || len(conflict.Differences) != 1 ||
					conflict.Have != there || conflict.Want != digestOf(t, ours) {
					t.Fatalf("%v", err)
				}
				if writes := w.writes(); len(writes) != 0 {
					t.Errorf("requests that write: %v", writes)
				}
			}
			tell.Observation(t, 0, "%v", err)
			for _, want := range []string{"--rebuild", "Anyone who can push to the registry can write that"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
			w.mustHave(t, "v1", there)

			o := w.options(newLayout(t, ours), "v1")
			o.Rebuild = true
			if result := mustPush(t, o); result.Tag != "v1-r2" || result.Digest != digestOf(t, ours) {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestAnIndexThatOnlySaysThatItWasMadeFromTheSameInputsIsRefused(t *testing.T) {
	ours, evil := site{page: "one"}.image(t), site{page: "evil"}.image(t)
	swapped := overPlatforms(ours, ours)
	swapped = mutate.AppendManifests(swapped, mutate.IndexAddendum{Add: evil})
	for name, there := range map[string]ocilayout.Artifact{
		"another image for one platform": overPlatforms(ours, evil),
		"an image more":                  swapped,
		"an image less":                  overPlatforms(ours),
		"an image":                       evil,
	} {
		w := newWorld(t)
		mustPush(t, w.options(newLayout(t, there), "v1"))
		_, err := Push(t.Context(), w.options(newLayout(t, overPlatforms(ours, ours)), "v1"))
		var conflict *TagConflictError
		if !errors.As(err, &conflict) || !conflict.Unknown {
			t.Errorf("%s: %v", name, err)
		}
		w.mustHave(t, "v1", digestOf(t, there))
	}
}

func TestAnImageThatIsKnownElsewhereIsTheImageThoughItsContentDiffers(t *testing.T) {
	w := newWorld(t)
	there, built := site{page: "one o'clock"}.image(t), site{page: "two o'clock"}.image(t)
	mustPush(t, w.options(newLayout(t, there), "v1"))
	o := w.options(newLayout(t, built), "v1")
	o.Known = func(_ context.Context, tag, digest string) (bool, error) {
		return tag == "v1" && digest == digestOf(t, there), nil
	}
	if result := mustPush(t, o); !result.AlreadyThere || result.Digest != digestOf(t, there) {
		t.Errorf("%+v", result)
	}
	silent := errors.New("the GitOps repository does not answer")
	o.Known = func(context.Context, string, string) (bool, error) { return true, silent }
	if _, err := Push(t.Context(), o); !errors.Is(err, silent) {
		t.Error(err)
	}
}
