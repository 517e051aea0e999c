package run

import (
	"context"
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
	"sync"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
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

	variableRecordings = "CASTLE_TEST_RECORDINGS"
)

// ofTools are the secrets, by the names that canaries gives them, that the tools of a layer may see.
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
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	described.State = config.State{Backend: config.StateS3, S3: config.S3{Bucket: "states", Region: "eu-west-1"}}
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
		variables, err := given.secrets(layer.Name)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, layer.Name, heldIn(strings.Join(variables, "\n"), all), ofTools[layer.Name])
	}
	if _, err := given.secrets("another"); err == nil {
		t.Error("a layer that is none is given something")
	}
	compare(t, "who reads a state", heldIn(strings.Join(given.forStates(), "\n"), all), ofEveryTool)
}

// What is secret and of no layer in the table would be Terragrunt's.
func TestNoSecretIsEverybodys(t *testing.T) {
	for _, variable := range variables {
		if variable.secret != nil && variable.everybodys() {
			t.Errorf("%s is secret and has no tools", variable.name)
		}
	}
}

// recording is what a program saw.
type recording struct {
	Layer, Command string
	Seen           string   // the environment of a provider and its ancestors, and their arguments
	Answers        []string // to a provider that asks for what it has not
}

// playTool is what Terragrunt starts in the test below. The place holder of OpenTofu is as in the program; OpenTofu starts a provider, which looks at what it can see.
func playTool() (started bool, err error) {
	name := filepath.Base(os.Args[0])
	switch {
	case os.Getenv(playVariable) != "":
		return true, playTerragrunt(os.Getenv(playVariable))
	case environment.IsTool():
		return true, environment.Exec()
	case name == "tofu" && (os.Args[1] == "-version" || os.Args[1] == "version"):
		fmt.Println("OpenTofu v1.12.0")
		return true, nil
	case name == "tofu":
		self, err := os.Executable()
		if err != nil {
			return true, err
		}
		provider := exec.Command(self, os.Args[1])
		provider.Args[0], provider.Stderr = "provider", os.Stderr
		return true, provider.Run()
	case name == "provider":
		return true, recordProvider(os.Args[1])
	}
	return false, nil
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
		variables, err := environment.Ask(environment.Request{Layer: layer.Name})
		made.Answers = append(made.Answers, fmt.Sprintf("%v %v", variables, err))
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
	file, err := os.CreateTemp(os.Getenv(variableRecordings), "*.json")
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
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(self, cluster.Tools.Tofu)); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	var mutex sync.Mutex
	units, err := cluster.Units(given.access, given.way, given.events, func(unit, message string) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Fprintln(&said, unit, message)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = units.Close() })
	units.runner.Env = append(units.runner.Env, variableRecordings+"="+folder)
	for _, command := range []string{"plan", "apply", "destroy"} {
		for _, outcome := range layers.Walk(t.Context(), layers.All, layers.ToApply(), func(ctx context.Context, layer layers.Layer) error {
			return units.run(ctx, layer, func(context.Context, string) error { return nil }, command)
		}) {
			if outcome.Err != nil {
				t.Fatalf("%s of %s: %v\n%s", command, outcome.Layer.Name, outcome.Err, said.String())
			}
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
		compare(t, seen.Command+" of "+seen.Layer, heldIn(seen.Seen, all), ofTools[seen.Layer])
		for _, answer := range seen.Answers {
			if !strings.HasPrefix(answer, "[] castle refuses") {
				t.Errorf("a provider of %s asks and gets %s", seen.Layer, answer)
			}
		}
	}
	for _, layer := range layers.All {
		for _, command := range []string{"init", "plan", "apply", "destroy"} {
			if !known[layer.Name+" "+command] {
				t.Errorf("nothing was recorded of %s in %s: %v", command, layer.Name, slices.Sorted(maps.Keys(known)))
			}
		}
	}
}
