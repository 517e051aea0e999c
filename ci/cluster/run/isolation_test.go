package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/canary"
	"tazlab.net/castle/ci/test/needs"
)

const (
	proxyKey   = "canary-of-the-proxy"
	recordings = "recordings" // folder beside the states
)

// ofTools and ofHooks are the secrets, by the names that canaries gives them, that the programs of a layer may see.
var (
	ofEveryTool = []string{"the states' key", secrets.AWSAccessKeyID, secrets.AWSSecretAccessKey}
	ofTools     = map[string][]string{
		layers.Secrets:  ofEveryTool,
		layers.Platform: append([]string{"the Proxmox token's key", secrets.ProxmoxAPIToken}, ofEveryTool...),
		layers.Engine: append([]string{
			proxyKey, secrets.InfisicalFluxClientID, secrets.InfisicalFluxClientSecret,
			secrets.InfisicalWorkloadsClientID, secrets.InfisicalWorkloadsClientSecret,
		}, ofEveryTool...),
		layers.Networking: append([]string{proxyKey}, ofEveryTool...),
		layers.Storage:    append([]string{proxyKey}, ofEveryTool...),
		layers.GitOps:     append([]string{proxyKey}, ofEveryTool...),
	}
	ofEveryHook = []string{secrets.AWSAccessKeyID, secrets.AWSSecretAccessKey}
	ofHooks     = map[string][]string{
		layers.Secrets: ofEveryHook,
		layers.Platform: append([]string{"administrator's key", "the Proxmox token's key", secrets.ProxmoxAPIToken, "cluster secret", "bootstrap token",
			"etcd's encryption", "trustd's token", "Talos's key", "Kubernetes's key", "etcd's key", "the aggregator's key", "the service accounts' key"}, ofEveryHook...),
		layers.Engine:     append([]string{"administrator's key"}, ofEveryHook...),
		layers.Networking: append([]string{"administrator's key"}, ofEveryHook...),
		layers.Storage:    append([]string{"administrator's key"}, ofEveryHook...),
		layers.GitOps:     append([]string{"administrator's key"}, ofEveryHook...),
	}
)

// heldIn are the canaries that a text holds, by name.
func heldIn(text string, all map[string]string) []string {
	search := canary.New(all)
	search.Text("", []byte(text))
	return slices.Sorted(maps.Keys(search.Leaks))
}

func compare(t *testing.T, who string, got, want []string) {
	t.Helper()
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%s: sees %q, and may see %q", who, got, want)
	}
}

// isolated is a cluster with every kind of secret, and what these are.
func isolated(t *testing.T) (*Cluster, *given, map[string]string) {
	t.Helper()
	described, err := description.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	described.State = description.State{Backend: description.StateS3, S3: description.S3{Bucket: "states", Region: "eu-west-1"}}
	all, access := canaries(t, described)
	all[proxyKey] = proxyKey
	cluster := &Cluster{Layers: layersFolder, State: t.TempDir(), Description: described}
	given, err := cluster.given(access, filepath.Join(cluster.State, eventsFile), Way{
		kube.HostVariable: "https://127.0.0.1:1", kube.CAVariable: "an authority", kube.ClientCertVariable: "a certificate", kube.ClientKeyVariable: proxyKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, given, all
}

func TestEachLayerIsGivenItsOwnSecretsAndNoOthers(t *testing.T) {
	_, given, all := isolated(t)
	compare(t, "Terragrunt", heldIn(strings.Join(given.everybodys(), "\n"), all), nil)
	for _, layer := range layers.All {
		for hook, want := range map[bool][]string{false: ofTools[layer.Name], true: ofHooks[layer.Name]} {
			variables, err := given.secrets(environment.Request{Layer: layer.Name, Hook: hook})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, fmt.Sprintf("%s (hook: %t)", layer.Name, hook), heldIn(strings.Join(variables, "\n"), all), want)
		}
	}
	if _, err := given.secrets(environment.Request{Layer: "another"}); err == nil {
		t.Error("a layer that is none is given something")
	}
	compare(t, "who reads a state", heldIn(strings.Join(given.forStates(), "\n"), all), ofEveryTool)
}

// What is secret and named nowhere in the table's columns would be Terragrunt's.
func TestNoSecretIsEverybodys(t *testing.T) {
	for _, variable := range variables {
		if variable.secret != nil && variable.everybodys() {
			t.Errorf("%s is secret and has neither tools nor hooks", variable.name)
		}
	}
}

// recording is what a program saw.
type recording struct {
	Layer, Command string
	Hook           bool
	Seen           string   // its own environment; of a provider, also its ancestors', and their arguments
	Answers        []string // to a provider that asks for what it has not
}

// playTool is what Terragrunt starts in the test below. A hook and the place holder of OpenTofu are as in the
// program; OpenTofu starts a provider, which looks at what it can see.
func playTool() (started bool, err error) {
	name := filepath.Base(os.Args[0])
	switch {
	case environment.IsTool():
		return true, environment.Exec()
	case name == "tofu" && (os.Args[1] == "-version" || os.Args[1] == "version"):
		fmt.Println("OpenTofu v1.12.0")
		return true, nil
	case name == "tofu":
		if os.Args[1] == "show" {
			fmt.Println("{}")
		}
		self, err := os.Executable()
		if err != nil {
			return true, err
		}
		provider := exec.Command(self, os.Args[1])
		provider.Args[0], provider.Stderr = "provider", os.Stderr
		return true, provider.Run()
	case name == "provider":
		return true, recordProvider(os.Args[1])
	case name == program:
		return true, recordHook(os.Args[1:])
	}
	return false, nil
}

func recordHook(args []string) error {
	layer := layers.Platform // talos up
	if args[0] != "talos" {
		layer = args[len(args)-1]
	}
	hook, err := OpenHook(layer)
	if err != nil {
		return err
	}
	seen := strings.Join(os.Environ(), "\n")
	return errors.Join(record(recording{Layer: layer, Command: strings.Join(args, " "), Hook: true, Seen: seen}), hook.Close())
}

func recordProvider(command string) error {
	made := recording{Layer: layerOfFolder(), Command: command}
	for pid := "self"; pid != "0"; {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			return err
		}
		for _, file := range []string{"environ", "cmdline"} {
			data, err := os.ReadFile("/proc/" + pid + "/" + file)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			made.Seen += strings.ReplaceAll(string(data), "\x00", "\n") + "\n"
		}
		for line := range strings.Lines(string(status)) {
			if parent, is := strings.CutPrefix(line, "PPid:"); is {
				pid = strings.TrimSpace(parent)
			}
		}
	}
	_, rest, _ := strings.Cut(made.Seen, environment.VariableSocket+"=") // Terragrunt's
	address, _, _ := strings.Cut(rest, "\n")
	if err := os.Setenv(environment.VariableSocket, address); err != nil {
		return err
	}
	for _, layer := range layers.All {
		for _, hook := range []bool{false, true} {
			variables, err := environment.Ask(environment.Request{Layer: layer.Name, Hook: hook})
			made.Answers = append(made.Answers, fmt.Sprintf("%v %v", variables, err))
		}
	}
	return record(made)
}

// layerOfFolder is the layer whose state the folder's backend names.
func layerOfFolder() string {
	backend, err := os.ReadFile("backend.tf")
	for _, layer := range layers.All {
		if err == nil && strings.Contains(string(backend), "/"+layer.Name+"/terraform.tfstate") {
			return layer.Name
		}
	}
	return ""
}

func record(made recording) error {
	data, err := json.Marshal(made)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Join(os.Getenv(VariableState), recordings), "*.json")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// The real Terragrunt runs castle's units; OpenTofu's provider looks at its own environment, its ancestors', and asks.
func TestAProviderSeesNothingButItsLayersSecrets(t *testing.T) {
	cluster, given, all := isolated(t)
	cluster.Tools.Terragrunt = needs.Programs(t, "terragrunt")["terragrunt"]
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, folder := t.TempDir(), filepath.Join(cluster.State, recordings)
	cluster.Tools.Tofu = filepath.Join(bin, "tofu")
	err = errors.Join(os.Mkdir(folder, 0o700), os.Symlink(self, cluster.Tools.Tofu), os.Symlink(self, filepath.Join(bin, program)))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var said strings.Builder
	runner, err := cluster.Runner(given.access, given.way, given.events, func(unit, message string) { fmt.Fprintln(&said, unit, message) })
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"destroy", "-auto-approve"}} {
		if runner.Plans = ""; command[0] == "plan" {
			runner.Plans = t.TempDir()
		}
		if _, err := runner.RunAll(t.Context(), command...); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
	}

	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range files {
		var seen recording
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &seen)
		}
		if err != nil {
			t.Fatal(err)
		}
		known[seen.Layer+" "+seen.Command] = true
		want := ofTools[seen.Layer]
		if seen.Hook {
			want = ofHooks[seen.Layer]
		}
		compare(t, fmt.Sprintf("%s of %s (hook: %t)", seen.Command, seen.Layer, seen.Hook), heldIn(seen.Seen, all), want)
		for _, answer := range seen.Answers {
			if !strings.HasPrefix(answer, "[] castle refuses") {
				t.Errorf("a provider of %s asks and gets %s", seen.Layer, answer)
			}
		}
	}
	for _, layer := range layers.All {
		for _, command := range []string{"init", "plan", "show", "apply", "destroy", "layer end " + layer.Name} {
			if !known[layer.Name+" "+command] {
				t.Errorf("nothing was recorded of %s in %s: %v", command, layer.Name, slices.Sorted(maps.Keys(known)))
			}
		}
	}
}
