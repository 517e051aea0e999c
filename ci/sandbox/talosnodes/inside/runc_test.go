//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAContainerIsMadeToFitTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		on           machine
		before, want string
	}{
		"root may not all": {
			machine{limited: true},
			`{"ociVersion":"1.2.0","process":{"args":["etcd"],"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"]},"oomScoreAdj":-998},"root":{"path":"rootfs"}}`,
			`{"ociVersion":"1.2.0","process":{"args":["etcd"],"capabilities":{"bounding":["CAP_KILL"]},"oomScoreAdj":0},"root":{"path":"rootfs"}}`,
		},
		"a kubelet and control groups of version 1": {
			machine{version1: true},
			`{"mounts":[{"destination":"/sys","type":"sysfs"},{"destination":"/sys/fs/cgroup","options":["bind","rw"],"source":"/sys/fs/cgroup","type":"bind"}],"process":{"args":["/usr/local/bin/kubelet","--config=x"],"oomScoreAdj":-450}}`,
			`{"mounts":[{"destination":"/sys","type":"sysfs"},{"destination":"/sys/fs/cgroup","options":["rbind","rw"],"source":"/sys/fs/cgroup","type":"bind"}],"process":{"args":["/usr/local/bin/kubelet","--config=x","--eviction-hard=memory.available\u003c100Mi","--image-gc-high-threshold=100","--fail-cgroupv1=false"],"oomScoreAdj":-450}}`,
		},
		"another container and control groups of version 1": {
			machine{version1: true},
			`{"mounts":[{"destination":"/sys/fs/cgroup","options":["ro"],"type":"cgroup"}],"process":{"args":["etcd"]}}`,
			`{"mounts":[{"destination":"/sys/fs/cgroup","options":["ro"],"type":"cgroup"}],"process":{"args":["etcd"]}}`,
		},
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(c.before), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := c.on.allow(file); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != c.want {
			t.Errorf("%s: it is %s: %v", name, after, err)
		}
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
