package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

func TestMistakesAreNamedWithWhatToTypeInstead(t *testing.T) {
	needs.Most(t)
	w, blog := world.New(t), newBlog(t)
	bare := newSite(t, map[string]string{"README.md": "Nothing to build.\n"})
	onManifest := append(w.OnRegistry(), w.OnGitOps()...)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a preview of no site":        {[]string{"preview-blog", "--source=" + bare, "up"}, "there is no Hugo site at the top of the repository"},
		"a check of no site":          {[]string{"check-blog", "--source=" + bare}, "there is no site in --source"},
		"a time that is no number":    {[]string{"status", "--cluster=sandbox", "--time-scale=fast"}, `--time-scale "fast" is not a number from 0 on`},
		"a port that is none":         {[]string{"preview-blog", "--source=" + blog, "--port=99999", "up"}, "--port 99999 is not a port"},
		"a platform without an image": {append([]string{"publish-blog", "--source=" + blog, "--platforms=linux/sparc", "--dry-run"}, onManifest...), "platform linux/sparc: the base"},
	} {
		t.Run(name, func(t *testing.T) {
			if done := call(t, w.Environment(), c.args...); done.err == nil || !strings.Contains(done.stderr, c.want) {
				t.Errorf("%v: no %q in\n%s%s", done.err, c.want, done.stdout, done.stderr)
			}
		})
	}
}

// Nothing of castle is in the repository that takes it as a toolchain.
func TestAToolchainCompilesItsPrograms(t *testing.T) {
	needs.Most(t)
	module := serveModule(t, func(string) {})
	source := newSite(t, map[string]string{"dagger.json": `{"name": "mine", "engineVersion": "v0.19.10"}`})
	if done := daggerIn(t, source, nil, "toolchain", "install", module); done.err != nil {
		t.Fatalf("%v\n%s", done.err, done.stderr)
	}
	if local := localImages(t); local != "" {
		filetest.Write(t, filepath.Join(source, localImagesFile), local)
	}
	if done := daggerIn(t, source, nil, "call", "--progress=plain", "castle", "check-blog"); done.err != nil || !strings.Contains(done.stdout, "there is no site here") {
		t.Errorf("a repository without a site is not well: %v\n%s\n%s", done.err, done.stdout, done.stderr)
	}
}
