package gitopsrepo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"tazlab.net/castle/ci/publish/manifest"
)

func TestTheSameRequestGivesTheSameBytes(t *testing.T) {
	folder := clusterFolder(t)
	first, second := rendered(t, full(folder)), rendered(t, full(folder))
	if !maps.EqualFunc(first, second, bytes.Equal) {
		t.Error("two renderings differ")
	}
}

func TestEveryFileIsWhatItsNameSays(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		for name, text := range rendered(t, request) {
			for _, left := range []string{"[[", "]]", "<no value>", "/NAME", "  \n", "\t"} {
				if bytes.Contains(text, []byte(left)) {
					t.Errorf("%s has %q in it", name, left)
				}
			}
			if !bytes.HasSuffix(text, []byte("\n")) || bytes.HasSuffix(text, []byte("\n\n")) {
				t.Errorf("%s does not end in one line break", name)
			}
			switch path.Ext(name) {
			case ".yaml":
				if bytes.Contains(text, []byte("\n\n")) {
					t.Errorf("%s has an empty line", name)
				}
				decoder := yaml.NewDecoder(bytes.NewReader(text))
				for {
					var document map[string]any
					err := decoder.Decode(&document)
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil || len(document) == 0 {
						t.Fatalf("%s: %v in %v\n%s", name, err, document, text)
					}
				}
			case ".json":
				var document map[string]any
				if err := json.Unmarshal(text, &document); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestEveryFileIsAppliedByFlux(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		seen := b.listed("clusters/green")
		for _, kustomization := range b.kustomizations {
			maps.Copy(seen, b.listed(strings.TrimPrefix(field(kustomization, "spec", "path"), "./")))
		}
		for name := range b.files {
			if strings.Contains(name, "/") && !seen[name] {
				t.Errorf("nothing applies %s", name)
			}
		}
		for name, kustomization := range b.kustomizations {
			if prune, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "prune"); !prune {
				t.Errorf("Kustomization %s keeps what leaves the repository", name)
			}
			if field(kustomization, "spec", "timeout") == "" || field(kustomization, "spec", "interval") == "" {
				t.Errorf("Kustomization %s has no timeout or interval", name)
			}
			if field(kustomization, "spec", "decryption", "secretRef", "name") != "sops-age" {
				t.Errorf("Kustomization %s cannot read what SOPS has encrypted", name)
			}
		}
	})
}

func TestKubernetesKnowsEveryField(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	known := 0
	everyPair(t, func(t *testing.T, request Request) {
		for _, object := range buildAll(t, rendered(t, request)).all() {
			if !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
				continue
			}
			known++
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := decoder.Decode(text, nil, nil); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	})
	if known == 0 {
		t.Error("no object was looked at")
	}
}

func TestNoSecretIsInClear(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		for _, object := range b.all() {
			if object.GetKind() == "Secret" {
				t.Errorf("Secret %s is in clear", object.GetName())
			}
		}
		readme := string(b.files["README.md"])
		for _, s := range secrets {
			if selected(request.With, request.Without)[s.Part] != strings.Contains(readme, s.Entries[0].Variable) {
				t.Errorf("README.md does not tell of %s as it should", s.Entries[0].Variable)
			}
			if object := b.find("ExternalSecret", s.Namespace, s.Name); (object != nil) != (selected(request.With, request.Without)[s.Part] && strings.Contains(readme, "Infisical")) {
				t.Errorf("ExternalSecret %s is %v", s.Name, object)
			}
		}
	})
}

// image is anything in a file that is an image's reference.
var image = regexp.MustCompile(`(?m)^\s+image: "?([^"\n]+)"?`)

func TestEveryChartAndImageIsPinned(t *testing.T) {
	exact := regexp.MustCompile(`^v?\d+\.\d+\.\d+$`)
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		for name, text := range b.files {
			if path.Ext(name) != ".yaml" {
				continue
			}
			if bytes.Contains(text, []byte("latest")) {
				t.Errorf("%s says latest", name)
			}
			for _, match := range image.FindAllStringSubmatch(string(text), -1) {
				if _, tag := splitImage(strings.Fields(match[1])[0]); tag == "" {
					t.Errorf("%s: %s has no tag", name, match[1])
				}
			}
		}
		for _, release := range b.ofKind("HelmRelease") {
			namespace := release.GetNamespace()
			if chart := field(release, "spec", "chart", "spec", "chart"); chart != "" {
				if version := field(release, "spec", "chart", "spec", "version"); !exact.MatchString(version) {
					t.Errorf("HelmRelease %s: version %q is not exact", release.GetName(), version)
				}
				if source := field(release, "spec", "chart", "spec", "sourceRef", "name"); b.find("HelmRepository", namespace, source) == nil {
					t.Errorf("HelmRelease %s: there is no HelmRepository %s in %s", release.GetName(), source, namespace)
				}
				continue
			}
			source := b.find("OCIRepository", namespace, field(release, "spec", "chartRef", "name"))
			if source == nil || !exact.MatchString(field(source, "spec", "ref", "tag")) {
				t.Errorf("HelmRelease %s: its source is %v", release.GetName(), source)
			}
		}
		for _, source := range append(b.ofKind("HelmRepository"), b.ofKind("OCIRepository")...) {
			if url := field(source, "spec", "url"); request.ChartMirror != "" && !strings.HasPrefix(url, strings.TrimSuffix(request.ChartMirror, "/")) {
				t.Errorf("%s %s is not the mirror", source.GetName(), url)
			}
		}
	})
}

func TestPublishBlogFindsTheImageOnce(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		if !selected(request.With, request.Without)[Blog] {
			return
		}
		files := rendered(t, request)
		repository, _ := splitImage(request.BlogImage)
		for name, text := range files {
			if path.Ext(name) != ".yaml" {
				continue
			}
			found, err := manifest.Find(text, manifest.Selector{Image: repository})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := name == "apps/base/hugo-blog/deployment.yaml"; want != (len(found) == 1) {
				t.Errorf("%s names the image %d times", name, len(found))
			}
		}
		const name = "apps/base/hugo-blog/deployment.yaml"
		bumped, change, err := manifest.Bump(files[name], manifest.Selector{Image: repository}, "blog-7654321", "")
		if err != nil || !change.Changed || change.Namespace != "blog" {
			t.Fatalf("%v %+v", err, change)
		}
		files[name] = bumped
		buildAll(t, files)
	})
}

func TestTheReadmeNamesWhatIsThere(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		files := rendered(t, request)
		for _, match := range regexp.MustCompile("`((?:clusters|infrastructure|apps|secrets)/[a-zA-Z0-9./_-]+)`").FindAllStringSubmatch(string(files["README.md"]), -1) {
			if !slices.ContainsFunc(files.Paths(), func(name string) bool { return under(name, match[1:]) }) {
				t.Errorf("README.md speaks of %s", match[1])
			}
		}
	})
}
