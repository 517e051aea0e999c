package mirror

import (
	"strings"
	"testing"
)

func TestAnAddressIsReadWithItsPathAndScheme(t *testing.T) {
	for text, want := range map[string]address{
		"localhost:5000":              {host: "localhost:5000", plain: true},
		"127.0.0.1:5000":              {host: "127.0.0.1:5000", plain: true},
		"[::1]:5000":                  {host: "[::1]:5000", plain: true},
		"https://localhost:5000":      {host: "localhost:5000"},
		"http://10.0.0.1:5000":        {host: "10.0.0.1:5000", plain: true},
		"registry.example.com/team/m": {host: "registry.example.com", path: "team/m"},
		"registry.example.com:5000/":  {host: "registry.example.com:5000"},
	} {
		got, err := parseAddress(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/path", "user:secret@registry.example.com", "http://"} {
		if _, err := parseAddress(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestTheEngineAsksTheMirrorFirstForEveryRegistryOfTheList(t *testing.T) {
	const mirrors = `[registry."docker.io"]
  mirrors = ["MIRROR"]

[registry."ghcr.io"]
  mirrors = ["MIRROR"]

[registry."quay.io"]
  mirrors = ["MIRROR"]

[registry."registry.dagger.io"]
  mirrors = ["MIRROR"]

[registry."registry.k8s.io"]
  mirrors = ["MIRROR"]

`
	for _, c := range []struct{ address, mirror, last string }{
		{"localhost:5000", "localhost:5000", "[registry.\"localhost:5000\"]\n  http = true\n"},
		{"registry.example.com/m", "registry.example.com/m", "[registry.\"registry.example.com\"]\n  http = false\n"},
	} {
		got, err := EngineConfig(theList(), c.address)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(mirrors, "MIRROR", c.mirror) + c.last; string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if _, err := EngineConfig(theList(), ""); err == nil {
		t.Error("no error without an address")
	}
}
