package hugobuild

import (
	"testing"

	"tazlab.net/castle/ci/publish/site/hugoversion"
)

func says(module, asks string) string {
	return `WARN  Module "` + module + `" is not compatible with this Hugo version: ` + asks + `; run "hugo mod graph" for more information.` + "\n"
}

func TestWhatThemesAskForIsComparedWithTheVersionThatIsUsed(t *testing.T) {
	const fix, other = ": write hugo: ", ", or take another release of the theme"
	for name, c := range map[string]struct{ said, warning, err string }{
		"nothing is said": {said: "title = 'a'\nWARN  something else\n"},
		"too old": {
			said: says("t", "Min 0.160.0"),
			err:  "the theme t asks for Hugo 0.160.0 or newer, and .hugo-version names 0.148.1" + fix + "0.160.0 for the site in castle.yaml, or give --hugo 0.160.0" + other,
		},
		"too new": {
			said:    says("t", "Max 0.120.0 extended"),
			warning: "the theme t asks for Hugo 0.120.0 or older, and .hugo-version names 0.148.1" + fix + "0.120.0 for the site in castle.yaml, or give --hugo 0.120.0" + other,
		},
		"two ends, and the site itself": {
			said: says("project", "Min 0.150.0") + says("example.org/t", "0.149/0.155.5 extended") + says("example.org/t", "0.149/0.155.5 extended"),
			err: "the site's configuration asks for Hugo 0.150.0 or newer; the theme example.org/t asks for Hugo 0.149.0 to 0.155.5, and " +
				".hugo-version names 0.148.1" + fix + "0.150.0 for the site in castle.yaml, or give --hugo 0.150.0" + other,
		},
		"the lowest of two most": {
			said: says("a", "Max 0.140.0") + says("b", "0.100.0/0.130.0"),
			warning: "the theme a asks for Hugo 0.140.0 or older; the theme b asks for Hugo 0.100.0 to 0.130.0, and .hugo-version names 0.148.1" +
				fix + "0.130.0 for the site in castle.yaml, or give --hugo 0.130.0" + other,
		},
		"no version is right": {
			said: says("a", "Max 0.140.0") + says("b", "Min 0.150.0-DEV"),
			err: "the theme a asks for Hugo 0.140.0 or older; the theme b asks for Hugo 0.150.0 or newer, and .hugo-version names 0.148.1: " +
				"no version is right for all of them; take other releases of the themes",
		},
		"an old Hugo does not say what": {
			said: `WARN 2026/01/02 03:04:05 Module "t" is not compatible with this Hugo version; run "hugo mod graph" for more information.` + "\n",
			warning: "the theme t asks for another Hugo, which hugo mod graph shows, and .hugo-version names 0.148.1" + fix +
				"VERSION for the site in castle.yaml, or give --hugo VERSION" + other,
		},
		"met after all": {said: says("a", "Min 0.148")},
	} {
		warning, err := check(requirements(c.said), hugoversion.Choice{Version: "0.148.1", From: ".hugo-version"})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if warning != c.warning || got != c.err {
			t.Errorf("%s:\ngot  %q, %q\nwant %q, %q", name, warning, got, c.warning, c.err)
		}
	}
}
