package talosnodes

import (
	"bytes"
	"strings"
	"testing"
)

func TestMachinedTrustsTheAuthorityAlone(t *testing.T) {
	list := []byte("## bundle\n-----BEGIN CERTIFICATE-----\nall of them\n")
	machined := []byte("code" + string(list) + "more code")
	trusting, err := trust(machined, list, []byte("ours"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "code" + "ours" + strings.Repeat("\n", len(list)-4) + "more code"; string(trusting) != want {
		t.Errorf("it is %q, not %q", trusting, want)
	}
	if !bytes.Contains(machined, list) {
		t.Error("what was built is another program now")
	}
}

func TestAnotherMachinedIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ list, authority, says string }{
		"another list":     {"others", "ours", "does not hold"},
		"no list":          {"", "ours", "does not hold"},
		"a long authority": {"list", "longer than the list", "takes 20 bytes"},
	} {
		if _, err := trust([]byte("code list code"), []byte(c.list), []byte(c.authority)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
