//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAContainerIsMadeWithoutWhatRootMayNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	before := `{"ociVersion":"1.2.0","process":{"args":["etcd"],"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"]},"oomScoreAdj":-998},"root":{"path":"rootfs"}}`
	want := `{"ociVersion":"1.2.0","process":{"args":["etcd"],"capabilities":{"bounding":["CAP_KILL"]},"oomScoreAdj":0},"root":{"path":"rootfs"}}`
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := allow(file); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != want {
		t.Errorf("it is %s: %v", after, err)
	}
}

func TestTheBundleIsTheOneThatIsNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--root", "/run/x", "create", "--bundle", "/run/etcd", "etcd"}, "/run/etcd"},
		{[]string{"run", "-b", "/run/etcd", "etcd"}, "/run/etcd"},
		{[]string{"create", "etcd"}, "."},
	} {
		if got := bundle(c.args); got != c.want {
			t.Errorf("%q: %s", c.args, got)
		}
	}
}
