package debian

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func machine(files map[string]string, commands ...string) host {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return host{files: tree, euid: 0, look: func(name string) (string, error) {
		if slices.Contains(commands, name) {
			return "/usr/bin/" + name, nil
		}
		return "", exec.ErrNotFound
	}}
}

const bookworm = "ID=debian\nVERSION_CODENAME=bookworm\n"

func TestTheHostsOwnMirrorsAreUsed(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"stanzas, with a third party's repository and a disabled one beside", map[string]string{
			"etc/os-release": bookworm,
			"etc/apt/sources.list.d/debian.sources": "# a comment\nTypes: deb deb-src\nURIs: http://mirror.example/debian\n" +
				"Suites: bookworm\n bookworm-updates bookworm-backports\nComponents: main contrib\nSigned-By: /k\n\n" +
				"Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\nComponents: main\n\n" +
				"Types: deb\nEnabled: no\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\n",
			"etc/apt/sources.list.d/third.list": "deb https://third.example/apt bookworm stable\ndeb https://third.example/apt other main\n",
		}, []string{
			"deb http://mirror.example/debian bookworm main",
			"deb http://mirror.example/debian bookworm-updates main",
			"deb http://mirror.example/security bookworm-security main",
		}},
		{"lines with options", map[string]string{
			"etc/os-release":       bookworm,
			"etc/apt/sources.list": "deb [arch=amd64 signed-by=/k] https://m.example/debian bookworm main # ours\ndeb-src https://m.example/debian bookworm main\n",
		}, []string{"deb https://m.example/debian bookworm main"}},
		{"a host of a newer release, whose mirrors carry the wanted one too", map[string]string{
			"etc/os-release":       "ID=debian\nVERSION_CODENAME=trixie\n",
			"etc/apt/sources.list": "deb http://m.example/debian trixie main\ndeb http://m.example/debian-security trixie-security main\n",
		}, []string{"deb http://m.example/debian bookworm main", "deb http://m.example/debian-security bookworm-security main"}},
		{"no mirror", map[string]string{"etc/os-release": bookworm}, nil},
		{"another distribution's mirrors", map[string]string{
			"etc/os-release":       "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n",
			"etc/apt/sources.list": "deb http://archive.ubuntu.example/ubuntu noble main\n",
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := machine(c.files).sources("bookworm"); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestAMachineThatCannotMakeARootSaysAllThatIsMissing(t *testing.T) {
	fedora := machine(map[string]string{"usr/lib/os-release": "ID=fedora\n"})
	fedora.euid = 1000
	got := strings.Join(fedora.unfitForRoot(), "\n")
	for _, want := range []string{"not Debian", "needs root", "apt-get install mmdebstrap", "debian-archive-keyring"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	fit := machine(map[string]string{"etc/os-release": "ID=ubuntu\nID_LIKE=\"debian\"\n", keyring[1:]: ""}, "mmdebstrap")
	if problems := fit.unfitForRoot(); len(problems) > 0 {
		t.Errorf("a fit machine has %v", problems)
	}
}

// tools puts a dpkg-query and an apt-get before the real ones. Their state is a folder: installed/ holds one file per
// installed package, lists one line per package that apt can install, archive what update makes of lists; asked logs apt-get's verbs.
func tools(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	bin := t.TempDir()
	for name, text := range map[string]string{
		"dpkg-query": `#!/bin/sh
code=0
for p in "$@"; do
	case $p in --*) continue ;; esac
	if [ -e "$STATE/installed/$p" ]; then echo "$p installed"; else echo "no package $p" >&2; code=1; fi
done
exit $code
`,
		"apt-get": `#!/bin/sh
verb=
for p in "$@"; do
	case $p in
	-o | DPkg::* | -q | --*) continue ;;
	install | update) verb=$p; echo "$p" >> "$STATE/asked"; [ "$p" = update ] && cp "$STATE/archive" "$STATE/lists"; continue ;;
	esac
	if ! grep -qx "$p" "$STATE/lists"; then echo "E: Unable to locate package $p" >&2; exit 100; fi
	: > "$STATE/installed/$p"
done
`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(state, "installed"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"installed/git": "", "lists": "git\n", "archive": "git\ntini\n", "asked": ""} {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("STATE", state)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return state
}

func asked(t *testing.T, state string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(state, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func TestInstallingWhatIsThereAsksAptNothingAndNeedsNoRights(t *testing.T) {
	state := tools(t)
	user := machine(nil)
	user.euid = 1000
	if err := user.install(context.Background(), []string{"git"}); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, state); len(got) != 0 {
		t.Errorf("apt-get was asked to %v", got)
	}
}

func TestAMissingPackageIsInstalledAfterTheListsWereFetched(t *testing.T) {
	state := tools(t)
	if err := machine(map[string]string{"etc/os-release": bookworm}).install(context.Background(), []string{"git", "tini"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(state, "installed/tini")); err != nil {
		t.Error(err)
	}
	if got := asked(t, state); !slices.Equal(got, []string{"install", "update", "install"}) {
		t.Errorf("apt-get was asked to %v", got)
	}
}

func TestAPackageThatTheListsKnowNeedsNoUpdate(t *testing.T) {
	state := tools(t)
	if err := os.Remove(filepath.Join(state, "installed/git")); err != nil {
		t.Fatal(err)
	}
	if err := machine(map[string]string{"etc/os-release": bookworm}).install(context.Background(), []string{"git"}); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, state); !slices.Equal(got, []string{"install"}) {
		t.Errorf("apt-get was asked to %v", got)
	}
}

func TestAPackageThatNobodyHasIsAnErrorWithAptsOwnWords(t *testing.T) {
	tools(t)
	err := machine(map[string]string{"etc/os-release": bookworm}).install(context.Background(), []string{"nosuch"})
	if err == nil || !strings.Contains(err.Error(), "Unable to locate package nosuch") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutRootTheErrorIsTheCommandToRun(t *testing.T) {
	state := tools(t)
	user := machine(map[string]string{"etc/os-release": bookworm})
	user.euid = 1000
	err := user.install(context.Background(), []string{"git", "tini", "runc"})
	unfit := (*UnfitError)(nil)
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "sudo apt-get install --no-install-recommends tini runc") {
		t.Errorf("got %v", err)
	}
	if got := asked(t, state); len(got) != 0 {
		t.Errorf("apt-get was asked to %v", got)
	}
}

func TestWithoutDpkgTheErrorSaysThatThisIsNotDebian(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := machine(nil).install(context.Background(), []string{"git"})
	if unfit := (*UnfitError)(nil); !errors.As(err, &unfit) || !strings.Contains(err.Error(), "not Debian") {
		t.Errorf("got %v", err)
	}
}

func TestNoPackagesAreAlwaysInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := Install(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestACancelledInstallSaysSo(t *testing.T) {
	tools(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := machine(map[string]string{"etc/os-release": bookworm}).install(ctx, []string{"tini"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
