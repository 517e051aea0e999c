//go:build linux

package docker

import (
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

func TestTheWrapperFindsTheFileOfTheProcessThatRuncStarts(t *testing.T) {
	needs.Most(t)
	for line, test := range map[string]struct {
		args []string
		want string
	}{
		"create":            {[]string{"--root", "/run/runc", "--log-format", "json", "create", "--bundle", "/b", "--pid-file", "/p", "id"}, "/b/config.json"},
		"run, joined":       {[]string{"run", "--bundle=/b", "id"}, "/b/config.json"},
		"exec":              {[]string{"--root", "/run/runc", "exec", "--process", "/tmp/process.json", "--detach", "id"}, "/tmp/process.json"},
		"exec, short":       {[]string{"exec", "-p", "/tmp/process.json", "id"}, "/tmp/process.json"},
		"starts no process": {[]string{"--root", "/run/runc", "kill", "--all", "id", "9"}, ""},
	} {
		if got := processFile(test.args); got != test.want {
			t.Errorf("%s: got %q, want %q", line, got, test.want)
		}
	}
}

func TestTheWrapperDropsOneCapabilityAndKeepsEverythingElse(t *testing.T) {
	needs.Most(t)
	for name, test := range map[string]struct{ before, after string }{
		"a container": {
			`{"hostname":"x","process":{"args":["CAP_SYS_RESOURCE"],"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE","CAP_KILL"],"effective":["CAP_SYS_RESOURCE"]},"rlimits":[{"hard":18446744073709551615}]}}`,
			`{"hostname":"x","process":{"args":["CAP_SYS_RESOURCE"],"capabilities":{"bounding":["CAP_CHOWN","CAP_KILL"],"effective":[]},"rlimits":[{"hard":18446744073709551615}]}}`,
		},
		"a process in a container": {
			`{"args":["sh"],"capabilities":{"permitted":["CAP_SYS_RESOURCE","CAP_KILL"]}}`,
			`{"args":["sh"],"capabilities":{"permitted":["CAP_KILL"]}}`,
		},
		"a process without capabilities": {`{"args":["sh"]}`, `{"args":["sh"]}`},
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(test.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := dropCapability(file, sysResource); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != test.after {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, test.after)
		}
	}
}
