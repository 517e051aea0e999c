package mirror

import (
	"fmt"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/setup/images"
)

func TestDigestsThatTheListLacksAreWrittenBelowTheirTags(t *testing.T) {
	up := newHub(t, registry.Options{})
	known := up.publish(t, "one", "1.0.0", index(t, "linux/amd64", "linux/arm64"))
	lacking := up.publish(t, "two", "2.0.0", index(t, "linux/amd64", "linux/arm64"))
	entry := func(image images.Image, digest string) string {
		return fmt.Sprintf("  - key: %s\n    image: %s\n    tag: %s\n%s    purpose: a test\n", image.Key, image.Name, image.Tag, digest)
	}
	line := func(image images.Image) string { return "    digest: " + image.Digest + "\n" }
	want := "images:\n" + entry(known, line(known)) + "\n" + entry(lacking, line(lacking))
	text := strings.Replace(want, line(lacking), "", 1)
	asked := lacking
	asked.Digest = ""
	got, err := Digests(t.Context(), images.List{known, asked}, text, nil)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}

	one := up.publish(t, "three", "3.0.0", single(t, "linux/amd64"))
	some := up.publish(t, "four", "4.0.0", index(t, "linux/amd64"))
	gone := images.Image{Name: up.host + "/five", Tag: "5.0.0", Platforms: one.Platforms}
	one.Digest, some.Digest = "", ""
	for image, want := range map[*images.Image]string{&one: "no index over linux/amd64, linux/arm64", &some: "none for linux/arm64", &gone: "five:5.0.0"} {
		if _, err := Digests(t.Context(), images.List{*image}, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", image.Name, err, want)
		}
	}
}
