//go:build linux

package kube

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// memoryLimit is in MiB. It is about twice what the control plane takes with all controllers, so that only something broken
// exceeds it, and no noise; how much it is, the test logs.
const memoryLimit = 2500

func TestTheControlPlaneWithAllControllersStaysSmall(t *testing.T) {
	found := programs(t, "kubernetes", "metallb", "external-secrets", "source-controller", "kustomize-controller", "helm-controller")
	w := newWorld(t, map[string]string{
		ImageMetalLBController: found["controller"], ImageExternalSecrets: found["external-secrets"],
		ImageSourceController: found["source-controller"], ImageKustomizeController: found["kustomize-controller"],
		ImageHelmController: found["helm-controller"],
	}, quick(t, nil))
	client := w.start()
	installMetalLB(w)
	installExternalSecrets(w)
	installFlux(w, found)
	w.available(client, metalLB, "controller", time.Minute)
	for _, name := range operatorDeployments {
		w.available(client, "external-secrets", name, time.Minute)
	}
	for _, name := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		w.available(client, "flux-system", name, time.Minute)
	}
	total := 0
	for _, pid := range children(t, os.Getpid()) {
		kilobytes := proportional(t, pid)
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		t.Logf("%4d MiB %s", kilobytes>>10, strings.TrimSpace(string(name)))
		total += kilobytes
	}
	if total >>= 10; total > memoryLimit {
		t.Errorf("%d MiB, want at most %d", total, memoryLimit)
	} else {
		t.Logf("%4d MiB together", total)
	}
}

// proportional is what a process has in memory, what it shares with others divided among them, in KiB.
func proportional(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var kilobytes int
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kilobytes); n == 1 {
			return kilobytes
		}
	}
	t.Fatalf("the kernel does not say what process %d has in memory", pid)
	return 0
}
