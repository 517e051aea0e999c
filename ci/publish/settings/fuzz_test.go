package settings

import (
	"os"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/strictyaml/strictyamltest"
)

// FuzzFile starts from this repository's castle.yaml and from one with every mistake. Whatever the file, each mistake is one line that
// names a line of it, and what is taken gives a complete site, or says what is missing.
func FuzzFile(f *testing.F) {
	own, err := os.ReadFile("../../../" + FileName)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(own), twoSites, mistaken} {
		f.Add(text, "")
		f.Add(text, "wiki")
	}
	f.Fuzz(func(t *testing.T, text, site string) {
		file, err := parse(FileName, []byte(text))
		if err != nil {
			strictyamltest.Check(t, err, []byte(text))
			return
		}
		resolved, err := Resolve(file, Settings{Site: site}, Cluster{}, ForManifest)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("it is refused without a word")
		}
		if err == nil && (resolved.Path == "" || resolved.Image == "" || resolved.Manifest == "" || resolved.GitOpsURL == "" || resolved.GitOpsBranch == "" || resolved.Port == 0) {
			t.Errorf("it is taken as %+v", resolved)
		}
	})
}
