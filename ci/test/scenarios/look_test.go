//go:build linux

package scenarios

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/status"
	"tazlab.net/castle/ci/cluster/timeline"
	seed "tazlab.net/castle/ci/sandbox/world"
)

// seed is what the world started from.
func (w *world) seed() seed.Seed {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.live, seed.SeedFile))
	if err != nil {
		w.t.Fatal(err)
	}
	var s seed.Seed
	if err := yaml.Unmarshal(data, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// lastRun is the record of the latest run, "" where there is none.
func (w *world) lastRun() string {
	entries, err := os.ReadDir(filepath.Join(w.state(), "runs"))
	if err != nil || len(entries) == 0 {
		return ""
	}
	return filepath.Join(w.state(), "runs", entries[len(entries)-1].Name())
}

// events are those of the latest run.
func (w *world) events() []timeline.Event {
	w.t.Helper()
	events, err := timeline.Read(filepath.Join(w.lastRun(), "events.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// event is the first event of the latest run that fits; a zero Kind says that there is none.
func (w *world) event(fits func(timeline.Event) bool) timeline.Event {
	w.t.Helper()
	events := w.events()
	if i := slices.IndexFunc(events, fits); i >= 0 {
		return events[i]
	}
	return timeline.Event{}
}

func ends(kind, layer, name string) func(timeline.Event) bool {
	return func(e timeline.Event) bool {
		return e.Kind == kind && e.Layer == layer && e.Phase == timeline.PhaseEnd && strings.HasPrefix(e.Name, name)
	}
}

// layerResult is how a layer of the latest run ended: "ok", "failed", "skipped", or "" where it did not end.
func (w *world) layerResult(layer string) string {
	w.t.Helper()
	return w.event(ends(timeline.KindLayer, layer, "")).Result
}

// started tells whether a layer of the latest run began.
func (w *world) started(layer string) bool {
	w.t.Helper()
	return w.event(func(e timeline.Event) bool {
		return e.Kind == timeline.KindLayer && e.Layer == layer && e.Phase == timeline.PhaseStart
	}).Kind != ""
}

// toolLog is what the tools printed in a layer of the latest run.
func (w *world) toolLog(layer string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.lastRun(), "log", layer+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// vm is a VM as Proxmox lists it.
type vm struct {
	ID       int    `json:"vmid"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	Tags     string `json:"tags"`
	Template int    `json:"template"`
}

// proxmox asks the simulated Proxmox, past castle.
func (w *world) proxmox(path string, into any) error {
	request, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(w.cluster.Proxmox.URL, "/")+"/api2/json"+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "PVEAPIToken="+w.seed().Proxmox.Tokens[0])
	transport := &http.Transport{DialContext: w.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("proxmox answers %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(&struct{ Data any }{into})
}

// vms are all VMs that Proxmox has, by id. An answer that is an error is asked for again: moods are wanted sometimes.
func (w *world) vms() []vm {
	w.t.Helper()
	var list []vm
	w.until(time.Minute, "Proxmox lists its VMs", func() (string, bool) {
		list = nil
		err := w.proxmox("/cluster/resources?type=vm", &list)
		return fmt.Sprint(err), err == nil
	})
	slices.SortFunc(list, func(a, b vm) int { return a.ID - b.ID })
	return list
}

// starts are how often each VM was given power, by its name: Proxmox's own number is the process's alone.
func (w *world) starts() map[string]int {
	w.t.Helper()
	var state struct {
		Guests map[int]struct {
			Config map[string]string `json:"config"`
			Starts int               `json:"starts"`
		} `json:"guests"`
	}
	data, err := os.ReadFile(filepath.Join(w.dir(), "proxmox.json"))
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	starts := map[string]int{}
	for _, guest := range state.Guests {
		starts[guest.Config["name"]] = guest.Starts
	}
	return starts
}

// hasExactlyItsVMs fails the test unless there are each node's VM, once and running, the template, and those of others.
func (w *world) hasExactlyItsVMs() {
	w.t.Helper()
	vms := w.vms()
	for _, node := range w.cluster.Nodes {
		found := 0
		for _, vm := range vms {
			if vm.ID == node.VMID && vm.Name == node.Name && vm.Status == "running" && slices.Contains(strings.Split(vm.Tags, ";"), w.cluster.Tag()) {
				found++
			}
		}
		if found != 1 {
			w.t.Errorf("node %s has %d running VMs with id, name and tag, not one", node.Name, found)
		}
	}
	if others := 1 + len(w.seed().Proxmox.Foreign); len(vms) != len(w.cluster.Nodes)+others {
		w.t.Errorf("Proxmox has %d VMs, not %d and the %d that it had: %+v", len(vms), len(w.cluster.Nodes), others, vms)
	}
	w.hasTheTemplate()
}

func (w *world) hasTheTemplate() {
	w.t.Helper()
	if !slices.ContainsFunc(w.vms(), func(vm vm) bool { return vm.ID == w.cluster.Proxmox.Template && vm.Template == 1 }) {
		w.t.Errorf("the template %d is gone", w.cluster.Proxmox.Template)
	}
}

// status is what castle says of the cluster now.
func (w *world) status() status.Status {
	w.t.Helper()
	var status status.Status
	if err := json.Unmarshal(w.castle("status", "--format=json").succeeds().stdout.Bytes(), &status); err != nil {
		w.t.Fatal(err)
	}
	return status
}

// isWell waits until every layer has its resources, every node runs and every gate holds: controllers take a moment to be
// themselves again after a power cut, and status looks for seconds only.
func (w *world) isWell() {
	w.t.Helper()
	w.until(3*time.Minute, "all is well", func() (string, bool) {
		problems := unwell(w.status(), w.cluster)
		return strings.Join(problems, "; "), len(problems) == 0
	})
}

// unwell lists what is not as it should be.
func unwell(status status.Status, described *config.Cluster) []string {
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, layer := range status.Layers {
		if layer.Resources == 0 || layer.Problem != "" {
			problem("layer %s holds %d resources: %s", layer.Layer, layer.Resources, layer.Problem)
		}
	}
	for _, node := range status.Nodes {
		if node.VM != "running" || !strings.HasPrefix(node.Talos, "configured") || node.Problem != "" {
			problem("node %s: VM %s, Talos %s: %s", node.Name, node.VM, node.Talos, node.Problem)
		}
	}
	gates := map[string]bool{}
	for _, gate := range status.Gates {
		gates[gate.Gate] = true
		if !gate.Holds {
			problem("gate %s, %s: %s", gate.Gate, gate.Condition, gate.Seen)
		}
	}
	has := len(layers.Of(described))
	if len(status.Nodes) != len(described.Nodes) || len(status.Layers) != has || len(gates) != has-1 {
		problem("status shows %d nodes, %d layers, %d gates", len(status.Nodes), len(status.Layers), len(gates))
	}
	return problems
}

// git calls git in the world's network.
func (w *world) git(folder string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "nsenter", append([]string{"-t", fmt.Sprint(w.process.Process.Pid), "-n", "git",
		"-c", "user.name=scenario", "-c", "user.email=scenario@invalid", "-c", "safe.directory=*"}, args...)...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// head is the commit that the GitOps repository is at.
func (w *world) head() string {
	w.t.Helper()
	return w.git(filepath.Join(w.dir(), "git", w.seed().Git.Repository+".git"), "rev-parse", w.cluster.GitOps.Branch)
}
