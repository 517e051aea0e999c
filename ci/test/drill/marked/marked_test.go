package marked

import "testing"

func TestOnlyWhatStandsBetweenTheMarksIsReplaced(t *testing.T) {
	got, err := Replace("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", "x", "new\n")
	if err != nil || got != "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n" {
		t.Errorf("%v: %q", err, got)
	}
}

func TestAPageWithoutTheMarksIsRefused(t *testing.T) {
	for _, page := range []string{"", "<!-- x -->\n", "<!-- /x -->\n<!-- x -->\n", "<!-- x -->\n<!-- x -->\n<!-- /x -->\n"} {
		if got, err := Replace(page, "x", "new\n"); err == nil {
			t.Errorf("%q became %q", page, got)
		}
	}
}
