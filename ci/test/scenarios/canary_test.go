//go:build linux

package scenarios

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/getsops/sops/v3/decrypt"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/canary"
)

// overheard is the key to the API that one call of castle made in memory for the tools of the layers in the cluster,
// as these have it.
type overheard struct {
	call *called
	key  string
}

// overhear looks into the environments of a call's children until it finds the key.
func (c *called) overhear() *overheard {
	found := &overheard{call: c}
	const variable = "KUBE_CLIENT_KEY_DATA="
	go func() {
		for found.key == "" {
			for _, pid := range descendants(c.command.Process.Pid) {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				if err != nil {
					continue
				}
				for _, entry := range bytes.Split(data, []byte{0}) {
					if value, has := bytes.CutPrefix(entry, []byte(variable)); has {
						found.key = string(value)
					}
				}
			}
			select {
			case <-c.done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return found
}

// canaries are the secrets of this world by name: nothing that castle leaves behind may hold one.
func (w *world) canaries() map[string]string {
	w.t.Helper()
	seed := w.seed()
	all := map[string]string{"Git token": seed.Git.Token, "Git read token": seed.Git.ReadToken, "Proxmox token": seed.Proxmox.Tokens[0]}
	if _, secret, has := strings.Cut(seed.Proxmox.Tokens[0], "="); has {
		all["secret part of the Proxmox token"] = secret
	}
	for _, project := range seed.Infisical.Projects {
		for _, client := range project.Clients {
			all["Infisical client secret"] = client.Secret
		}
	}
	bootstrap := w.sopsValues()
	for name, value := range bootstrap {
		if !strings.Contains(value, "\n") && name != "GITOPS_USERNAME" { // what has lines is looked for by its parts, or a certificate
			all["SOPS file's "+name] = value
		}
	}
	kept := bootstrap
	if w.cluster.Secrets.Infisical.Has() {
		kept = w.infisical()
	}
	for _, name := range []string{"SOPS_AGE_KEY", "GITOPS_TOKEN"} {
		all["the cluster's "+name] = kept[name]
	}
	var machine any
	if err := yaml.Unmarshal([]byte(kept["TALOS_SECRETS"]), &machine); err != nil {
		w.t.Fatal(err)
	}
	leaves("TALOS_SECRETS", machine, all)
	for _, name := range []string{secrets.AdminKubeconfig, secrets.AdminTalosconfig} {
		for i, key := range secrets.PrivateKeys(kept[name]) {
			if kept[name] != "" {
				all[fmt.Sprintf("%s's key %d", name, i+1)] = key
			}
		}
	}
	key, err := os.ReadFile(filepath.Join(w.live, "age.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(key)) {
		if strings.HasPrefix(line, "AGE-SECRET-KEY") {
			all["age key"] = strings.TrimSpace(line)
		}
	}
	return all
}

// sopsValues are the secrets in the cluster's SOPS files.
func (w *world) sopsValues() map[string]string {
	w.t.Helper()
	values := map[string]string{}
	for _, name := range w.cluster.Secrets.SOPS {
		clear, err := decrypt.File(filepath.Join(w.live, name), "yaml")
		if err == nil {
			err = yaml.Unmarshal(clear, &values)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return values
}

// infisical is what the simulated Infisical holds for the cluster.
func (w *world) infisical() map[string]string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir(), "infisical.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var state struct {
		Projects map[string]struct {
			Environments map[string]struct {
				Folders map[string]struct {
					Secrets map[string]struct{ Value string }
				}
			}
		}
	}
	if err := json.Unmarshal(data, &state); err != nil {
		w.t.Fatal(err)
	}
	place := w.cluster.Secrets.Infisical
	values := map[string]string{}
	for _, folder := range []string{place.Path, place.FluxPath} {
		for name, secret := range state.Projects[place.Project].Environments[place.Environment].Folders[folder].Secrets {
			values[name] = secret.Value
		}
	}
	return values
}

// leaves collects the secret texts of the machine secrets: everything but certificates and the cluster's id.
func leaves(name string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if key != "crt" && key != "id" {
				leaves(name+"."+key, below, into)
			}
		}
	case string:
		into[name] = value
	}
}

// leaksNothing searches all that castle has printed and left behind for the world's secrets, and for the tools'
// keys that were overheard. A file beside these holds each of them, to see that the search finds it.
func (w *world) leaksNothing(heard ...*overheard) {
	w.t.Helper()
	canaries := w.canaries()
	for i, one := range heard {
		switch {
		case one.key != "":
			canaries[fmt.Sprintf("the tools' key %d", i+1)] = one.key
		case one.call.err == nil: // one that ended before may not have come so far
			w.t.Errorf("the tools' key of call %d was not found in any environment", i+1)
		}
	}
	if len(canaries) < 15 {
		w.t.Errorf("only %d canaries: %v", len(canaries), slices.Sorted(maps.Keys(canaries)))
	}
	planted := filepath.Join(w.state(), "planted.json.gz")
	data, err := json.Marshal(canaries)
	var packed bytes.Buffer
	if err == nil {
		writer := gzip.NewWriter(&packed)
		_, err = writer.Write(data)
		err = errors.Join(err, writer.Close(), os.WriteFile(planted, packed.Bytes(), 0o600))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	found, hits := w.search(canaries), 0
	for name := range canaries {
		leaks := slices.DeleteFunc(slices.Clone(found.Leaks[name]), func(place string) bool { return strings.HasPrefix(place, planted+"!") })
		if len(leaks) > 0 {
			w.t.Errorf("%s is in %v", name, leaks)
			hits++
		}
		if len(leaks) == len(found.Leaks[name]) {
			w.t.Errorf("the search does not find %s where it is", name)
		}
	}
	w.t.Logf("%d canaries in %d places: %d hits", len(canaries), found.Places, hits)
	if err := os.Remove(planted); err != nil {
		w.t.Fatal(err)
	}
}

// sourcesOfSecrets are the files of a cluster's folder that hold secrets as they are: the proving ground's own.
var sourcesOfSecrets = []string{"age.key", "world.yaml"}

// search looks for secrets in all that castle has printed, in the folders that it writes to, and in the cluster's own, where the tools generate
// files.
func (w *world) search(canaries map[string]string) *canary.Search {
	w.t.Helper()
	found := canary.New(canaries)
	found.Text("what castle printed", []byte(strings.Join(w.shown, "\n")))
	err := errors.Join(found.Folder(w.state()), found.Folder(w.temp()), found.Folder(w.live, sourcesOfSecrets...))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
