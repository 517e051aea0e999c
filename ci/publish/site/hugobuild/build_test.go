package hugobuild

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/needs"
)

// workshop is a folder for a site, and the real Hugo on PATH.
func workshop(t *testing.T, site string) Options {
	t.Helper()
	t.Setenv("PATH", needs.Tool(t, "hugo")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	folder := t.TempDir()
	opts := Options{
		Site: filepath.Join(folder, "site"), Out: filepath.Join(folder, "public"), Cache: filepath.Join(folder, "cache"), From: "netlify.toml",
	}
	write(t, opts.Site, site)
	t.Cleanup(func() { // Go's module cache is read-only
		_ = filepath.WalkDir(opts.Cache, func(name string, _ os.DirEntry, _ error) error { return os.Chmod(name, 0o700) })
	})
	return opts
}

func write(t *testing.T, folder, archive string) {
	t.Helper()
	for _, file := range txtar.Parse([]byte(archive)).Files {
		filetest.Write(t, filepath.Join(folder, file.Name), string(file.Data))
	}
}

func (o Options) build(t *testing.T) error {
	t.Helper()
	warning, err := o.warned(t)
	if warning != "" {
		t.Errorf("warned of %s", warning)
	}
	return err
}

func (o Options) warned(t *testing.T) (warning string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	warnings, err := Build(ctx, o)
	return strings.Join(warnings, "\n"), err
}

func (o Options) page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.Out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// failsWith wants an error of one line with all of these in it.
func (o Options) failsWith(t *testing.T, wants ...string) {
	t.Helper()
	err := o.build(t)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

const settings = `
-- hugo.toml --
title = "a site"
disableKinds = ["taxonomy", "term", "rss", "sitemap", "404"]
`

func TestASiteIsBuiltForTheAddressThatIsAskedFor(t *testing.T) {
	opts := workshop(t, settings+"-- layouts/home.html --\n{{ .Title }} at {{ .Permalink }}\n")
	opts.BaseURL = "https://example.org/blog/"
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got, want := opts.page(t), "a site at https://example.org/blog/"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The other Sass is a program of its own.
func TestLibSassIsCompiledIn(t *testing.T) {
	opts := workshop(t, settings+`
-- layouts/home.html --
{{ (resources.Get "a.scss" | css.Sass (dict "transpiler" "libsass" "outputStyle" "compressed")).Content }}
-- assets/a.scss --
$c: red;
body { p { color: $c } }
`)
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); !strings.Contains(got, "body p{color:red}") {
		t.Errorf("got %q", got)
	}
}

// A site may ask for results out of its resources folder alone; what is there instead is the cache of earlier builds.
func TestSassIsCompiledThoughTheSiteAsksForTheCache(t *testing.T) {
	opts := workshop(t, settings+`
[build]
useResourceCacheWhen = "always"
-- layouts/home.html --
{{ (resources.Get "a.scss" | css.Sass).Content }}
-- assets/a.scss --
body { p { color: blue } }
`)
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); !strings.Contains(got, "color:blue") && !strings.Contains(got, "color: blue") {
		t.Errorf("got %q", got)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	opts := workshop(t, settings+`
-- layouts/home.html --
{{ (resources.Get "a.css" | css.PostCSS).Content }}
-- assets/a.css --
body { color: red }
-- package.json --
{"devDependencies": {"postcss-cli": "11.0.1"}}
`)
	opts.failsWith(t, "the program postcss", "run npm install and commit package-lock.json")
}

func TestASiteForANewerHugoIsRefusedThoughHugoOnlyWarns(t *testing.T) {
	opts := workshop(t, settings+"[module.hugoVersion]\nmin = \"0.900.0\"\n-- layouts/home.html --\nhome\n")
	opts.failsWith(t, "the site's configuration asks for Hugo 0.900.0 or newer")
}

// A theme says it in its configuration, or as themes did before there were modules.
func TestAThemeForANewerHugoIsNamedBeforeAnythingIsBuilt(t *testing.T) {
	for name, theme := range map[string]string{
		"module":     "-- themes/plain/hugo.toml --\n[module.hugoVersion]\nmin = \"0.900.0\"\nextended = true\n",
		"theme.toml": "-- themes/plain/theme.toml --\nmin_version = \"0.900\"\n",
	} {
		opts := workshop(t, settings+"theme = \"plain\"\n"+theme+"-- layouts/home.html --\nhome\n")
		opts.failsWith(t, "the theme plain asks for Hugo 0.900.0 or newer, and netlify.toml names ", "write hugo: 0.900.0 for the site in castle.yaml")
		if _, err := os.Stat(opts.Out); err == nil {
			t.Errorf("%s: built before it was checked", name)
		}
	}
}

func TestAThemeForAnOlderHugoIsBuiltWithAWarning(t *testing.T) {
	opts := workshop(t, settings+"theme = \"plain\"\n-- themes/plain/hugo.yaml --\nmodule: {hugoVersion: {min: 0.100.0, max: 0.120.1}}\n"+
		"-- layouts/home.html --\nhome\n")
	warning, err := opts.warned(t)
	if err != nil || !strings.HasPrefix(warning, "the theme plain asks for Hugo 0.100.0 to 0.120.1, and netlify.toml names ") {
		t.Errorf("%q, %v", warning, err)
	}
	if opts.page(t) != "home" {
		t.Error("not built")
	}
}

// proxy serves one Hugo module, out of a folder, to whatever go command follows.
func proxy(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	version := module.Version{Path: "example.org/theme", Version: "v1.2.3"}
	source := filepath.Join(folder, "source")
	write(t, source, "-- go.mod --\nmodule example.org/theme\n\ngo 1.24\n-- layouts/home.html --\nthe theme's page\n")
	at := filepath.Join(folder, "proxy", version.Path, "@v")
	write(t, at, "-- list --\nv1.2.3\n-- v1.2.3.info --\n{\"Version\": \"v1.2.3\"}\n-- v1.2.3.mod --\nmodule example.org/theme\n\ngo 1.24\n")
	archive, err := os.Create(filepath.Join(at, "v1.2.3.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, version, source); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+filepath.Join(folder, "proxy"))
	t.Setenv("GONOSUMDB", "example.org")
	t.Setenv("GOTOOLCHAIN", "local")
}

const withTheme = settings + `
[[module.imports]]
path = "example.org/theme"
-- go.mod --
module example.org/site

go 1.24
`

func TestAHugoModuleComesByGosOwnProxy(t *testing.T) {
	opts := workshop(t, withTheme+"\nrequire example.org/theme v1.2.3 // indirect\n")
	proxy(t)
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); got != "the theme's page" {
		t.Errorf("got %q", got)
	}
}

func TestAModuleWithoutAVersionIsRefused(t *testing.T) {
	opts := workshop(t, withTheme)
	proxy(t)
	opts.failsWith(t, "leaves the version of example.org/theme open", "run hugo mod tidy")
}

func TestAModuleOutOfReachIsNamedAndVendoredItIsNotAskedFor(t *testing.T) {
	opts := workshop(t, withTheme+"\nrequire example.org/theme v1.2.3 // indirect\n")
	t.Setenv("GOPROXY", "http://127.0.0.1:1")
	t.Setenv("GOTOOLCHAIN", "local")
	opts.failsWith(t, "the Hugo module example.org/theme@v1.2.3 cannot be downloaded here", "hugo mod vendor")

	proxy(t)
	vendor := exec.CommandContext(t.Context(), "hugo", "mod", "vendor")
	vendor.Dir = opts.Site
	vendor.Env = append(os.Environ(), "HUGO_MODULE_PROXY="+os.Getenv("GOPROXY"), "HUGO_CACHEDIR="+filepath.Join(opts.Cache, "other"))
	if output, err := vendor.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Setenv("GOPROXY", "off")
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); got != "the theme's page" {
		t.Errorf("got %q", got)
	}
}

func TestAProxyOfTheSitesOwnStays(t *testing.T) {
	for text, want := range map[string]bool{
		"[module]\nproxy = \"https://proxy.example\"\n":     true,
		"module:\n  proxy: direct\n":                        true,
		"{\"module\": {\n\"proxy\": \"direct\"}}\n":         true,
		"module.proxy = 'direct'\n":                         true,
		"[params]\ndescription = \"about a proxy: mine\"\n": false,
		"title = \"a\"\n":                                   false,
	} {
		for _, name := range []string{"hugo.toml", "config/_default/module.yaml"} {
			site := t.TempDir()
			write(t, site, "-- "+name+" --\n"+text)
			if got, err := namesProxy(site); got != want || err != nil {
				t.Errorf("%s %q: got %v, %v", name, text, got, err)
			}
		}
	}
}

func TestHugoIsEndedWithTheBuild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	_, err := run(ctx, command{timeout: time.Minute, name: "sh", args: []string{"-c", "sleep 30 & wait"}})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 4*time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
	_, err = run(t.Context(), command{timeout: 50 * time.Millisecond, name: "sleep", args: []string{"30"}})
	if err == nil || err.Error() != "sleep did not end within 50ms" {
		t.Errorf("got %v", err)
	}
}
