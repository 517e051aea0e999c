package talosnodes

import (
	"bytes"
	"strings"
	"testing"
)

const (
	begins = "-----BEGIN CERTIFICATE-----"
	ends   = "-----END CERTIFICATE-----"
)

func TestMachinedTrustsTheAuthorityAlone(t *testing.T) {
	list := begins + "\none\n" + ends + "\n\nThe other\n=========\n" + begins + "\nother\n" + ends
	before := "code that looks for " + begins + " " + begins + "\nan example\n" + ends + strings.Repeat("\x00", between+1) + "## bundle\n"
	after := "\n" + strings.Repeat("\x00", between) + begins + "\nanother example\n" + ends + "more code" + begins
	machined := []byte(before + list + after)
	trusting, err := trust(machined, []byte("ours"))
	if err != nil {
		t.Fatal(err)
	}
	if want := before + "ours" + strings.Repeat("\n", len(list)-4) + after; string(trusting) != want {
		t.Errorf("it is %q, not %q", trusting, want)
	}
	if !bytes.Contains(machined, []byte(list)) {
		t.Error("what was built is another program now")
	}
}

func TestAnotherMachinedIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ machined, authority, says string }{
		"no list":          {"code " + begins + " code", "ours", "does not hold"},
		"a long authority": {begins + ends, strings.Repeat("long", 20), "takes 80 bytes, of which the list has 52"},
	} {
		if _, err := trust([]byte(c.machined), []byte(c.authority)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
