//go:build linux

package main

import (
	"strings"
	"testing"
)

// Before a world takes anything of its folder, it says what is missing of what real nodes are made of, all at once.
func TestRealNodesSayWhatIsMissing(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--nodes=talos --talos=x --node=x --kubelet=x", "real nodes need --layers, --speaker, --containerd, --coredns, --flannel, --flannel-cni as well"},
		{"--nodes=qemu", "--nodes qemu: there are simulated and talos"},
		{"--nodes=talos --layers=x --speaker=x --talos=x --containerd=x --node=x --kubelet=x --coredns=x --flannel=x --flannel-cni=x --fault=nonsense", "unknown fault nonsense"},
	} {
		root := newRootCommand()
		root.SetArgs(append([]string{"serve", "--cluster=" + t.TempDir(), "--dir=" + t.TempDir(), "--binaries=x"}, strings.Fields(c.flags)...))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.flags, err)
		}
	}
}
