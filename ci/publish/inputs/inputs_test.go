package inputs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func sample() Inputs {
	return Inputs{
		Commit: "5d6e7f80", Path: "blog", Hugo: "example.org/hugo:1@sha256:aa", Base: "example.org/nginx:1@sha256:bb",
		Castle: "1.2.3", Platforms: []string{"linux/amd64"}, Port: 80, Headers: "fitted",
	}
}

func manifestOf(t *testing.T, annotations map[string]string) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"schemaVersion": 2, "annotations": annotations})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestInputsComeBackFromAManifest(t *testing.T) {
	read := OfManifest(manifestOf(t, sample().Annotations()))
	if !read.Same(sample()) || !reflect.DeepEqual(read, sample()) {
		t.Errorf("got %+v", read)
	}
}

func TestWhatDoesNotSayWhatItWasMadeFromIsNeverTheSame(t *testing.T) {
	for name, manifest := range map[string]string{
		"another program's": `{"schemaVersion":2}`,
		"no JSON":           "<html>",
		"cut annotation":    `{"annotations":{"` + Key + `":"{\"commit\":"}}`,
		"empty inputs":      `{"annotations":{"` + Key + `":"{}"}}`,
	} {
		read := OfManifest([]byte(manifest))
		if read.Same(sample()) || sample().Same(read) || read.Same(read) {
			t.Errorf("%s: %+v", name, read)
		}
		if got := sample().Differences(read); len(got) != 1 || !strings.Contains(got[0], "does not say") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if (Inputs{}).Annotations() != nil {
		t.Error("unknown inputs were written down")
	}
}

// Every field counts, those of tomorrow too: the loop fails for one that Differences does not know.
func TestEachInputThatDiffersIsNamed(t *testing.T) {
	fields := reflect.TypeFor[Inputs]()
	for i := range fields.NumField() {
		changed := sample()
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("other")
		case reflect.Int:
			field.SetInt(4711)
		default:
			field.Set(reflect.ValueOf([]string{"linux/arm64"}))
		}
		differences := changed.Differences(sample())
		if len(differences) != 1 || changed.Same(sample()) {
			t.Errorf("%s: %q", fields.Field(i).Name, differences)
		}
		if changed.Annotations()[KeyDigest] == sample().Annotations()[KeyDigest] {
			t.Errorf("%s is not in the digest", fields.Field(i).Name)
		}
	}
	changed := sample()
	changed.Base, changed.BaseURL = "example.org/nginx:1@sha256:cc", "https://example.org/"
	want := []string{
		"the base image was example.org/nginx:1@sha256:bb and is example.org/nginx:1@sha256:cc",
		"the base URL was the default and is https://example.org/",
	}
	if got := changed.Differences(sample()); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
