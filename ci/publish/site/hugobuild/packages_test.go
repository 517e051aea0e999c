package hugobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// packages installs those of a site with these files and returns what came.
func packages(t *testing.T, site string) ([]string, error) {
	t.Helper()
	folder := t.TempDir()
	opts := PackageOptions{Site: filepath.Join(folder, "site"), Out: filepath.Join(folder, "out"), Cache: filepath.Join(folder, "cache")}
	write(t, opts.Site, site)
	err := Packages(t.Context(), opts)
	var names []string
	for _, pattern := range []string{"*", "node_modules/*"} {
		found, globErr := filepath.Glob(filepath.Join(opts.Out, pattern))
		if globErr != nil {
			t.Fatal(globErr)
		}
		for _, file := range found {
			names = append(names, strings.TrimPrefix(file, opts.Out+"/"))
		}
	}
	return names, err
}

const listing = `
-- package.json --
{"workspaces": ["packages/hugoautogen"]}
-- packages/hugoautogen/package.json --
{"name": "theme", "version": "0.1.0", "scripts": {"install": "touch ran"}}
`

func TestOnlyALockedListOfPackagesIsInstalled(t *testing.T) {
	npm := needs.Command(t, "npm", "npm")
	locked := t.TempDir()
	write(t, locked, listing)
	lock := exec.CommandContext(t.Context(), npm, "install", "--package-lock-only", "--offline", "--ignore-scripts")
	lock.Dir = locked
	if output, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(locked, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	withLock := listing + "-- package-lock.json --\n" + string(text)

	got, err := packages(t, withLock)
	if want := []string{"node_modules", "packages", "node_modules/.package-lock.json", "node_modules/theme"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("with a lock: %v, %v, want %v", got, err, want)
	}
	for what, site := range map[string]string{
		"no package.json":          "-- hugo.toml --\n",
		"no lock":                  listing,
		"nothing listed":           "-- package.json --\n{\"name\": \"site\"}\n-- package-lock.json --\n{}\n",
		"a committed node_modules": withLock + "-- node_modules/a/package.json --\n{}\n",
	} {
		if got, err := packages(t, site); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

func TestALockThatDoesNotFitIsRefused(t *testing.T) {
	needs.Command(t, "npm", "npm")
	_, err := packages(t, `
-- package.json --
{"devDependencies": {"postcss-cli": "11.0.1"}}
-- package-lock.json --
{"lockfileVersion": 3, "packages": {"": {}}}
-- .npmrc --
registry=http://127.0.0.1:1/
fetch-retries=0
`)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestARegistryOutOfReachIsSaidWithThePackage(t *testing.T) {
	needs.Command(t, "npm", "npm")
	_, err := packages(t, `
-- package.json --
{"devDependencies": {"postcss-cli": "11.0.1"}}
-- package-lock.json --
{"lockfileVersion": 3, "packages": {"": {"devDependencies": {"postcss-cli": "11.0.1"}},
 "node_modules/postcss-cli": {"version": "11.0.1", "dev": true, "integrity": "sha512-0UnkNPSayHKRe/tc2YGW6XnSqqOA9eqpiRMgRlV1S6HdGi16vwJBx7lviARzbV1HpQHqLLRH3o8vTcB0cLc+5g=="}}}
-- .npmrc --
registry=http://127.0.0.1:1/
`)
	if err == nil || !strings.Contains(err.Error(), "the npm package postcss-cli cannot be downloaded here") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestAListThatIsNoJSONIsNamed(t *testing.T) {
	_, err := packages(t, "-- package.json --\n{\n-- package-lock.json --\n{}\n")
	if err == nil || !strings.Contains(err.Error(), "the site's package.json") {
		t.Errorf("got %v", err)
	}
}

// A workspace's packages are installed where its lock is, and Hugo finds their programs there.
func TestPackagesOfALockAboveTheSiteAreInstalledThere(t *testing.T) {
	npm := needs.Command(t, "npm", "npm")
	top := t.TempDir()
	write(t, top, `
-- work/package.json --
{"workspaces": ["website", "tools/upper"]}
-- work/website/package.json --
{"name": "site", "dependencies": {"upper": "*"}}
-- work/tools/upper/package.json --
{"name": "upper", "version": "0.1.0", "bin": "upper.js"}
-- work/tools/upper/upper.js --
-- work/tools/other.js --
`)
	lock := exec.CommandContext(t.Context(), npm, "install", "--package-lock-only", "--offline", "--ignore-scripts")
	lock.Dir = filepath.Join(top, "work")
	if output, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	folder, err := PackageFolder(top, "work/website")
	if err != nil || folder != "work" {
		t.Fatalf("the folder is %q, %v", folder, err)
	}
	files, err := PackageFiles(filepath.Join(top, folder))
	want := []string{"package-lock.json", "package.json", "tools/upper/package.json", "website/package.json"}
	if err != nil || !slices.Equal(files, want) {
		t.Fatalf("%q, %v, want %q", files, err, want)
	}
	out := filepath.Join(top, "out")
	if err := Packages(t.Context(), PackageOptions{Site: filepath.Join(top, folder), Out: out, Cache: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(out, "node_modules", "upper")); err != nil || target != "../tools/upper" {
		t.Errorf("node_modules/upper leads to %q, %v", target, err)
	}
}

func TestTheNearestLockDecidesWherePackagesAreInstalled(t *testing.T) {
	const list = `{"devDependencies": {"a": "1"}}`
	for _, story := range []struct{ name, archive, want string }{
		{"the site's own", "-- package.json --\n" + list + "\n-- package-lock.json --\n{}\n-- site/package.json --\n" + list + "\n-- site/package-lock.json --\n{}\n", "site"},
		{"above", "-- package.json --\n" + list + "\n-- package-lock.json --\n{}\n-- site/package.json --\n" + list + "\n", "."},
		{"committed packages", "-- package.json --\n" + list + "\n-- package-lock.json --\n{}\n-- site/node_modules/a/x --\n", ""},
		{"none", "-- package.json --\n" + list + "\n-- site/hugo.toml --\n", ""},
	} {
		top := t.TempDir()
		write(t, top, story.archive)
		if got, err := PackageFolder(top, "site"); err != nil || got != story.want {
			t.Errorf("%s: %q, %v, want %q", story.name, got, err, story.want)
		}
	}
}
