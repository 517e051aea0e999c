package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// adminTTL is how long the administrator's certificate of one run is good for. It is made in memory for each run.
const adminTTL = 24 * time.Hour

// Variables that root.hcl and castle's own commands read, which gates within a layer are.
const (
	VariableBackends  = "CASTLE_BACKENDS" // where each layer's state is kept, JSON
	VariableCharts    = "CASTLE_CHARTS"
	VariableProviders = "CASTLE_PROVIDERS" // entries of lock files by provider and version, JSON
	VariableEvents    = "CASTLE_EVENTS"
	VariableScaled    = "CASTLE_SCALED" // only in a sandbox whose delays are not a homelab's

	variableProxmoxToken = "PROXMOX_VE_API_TOKEN" // the provider's own
	variableAccessKey    = "AWS_ACCESS_KEY_ID"
	variableSecretKey    = "AWS_SECRET_ACCESS_KEY"
)

// inherited are the caller's variables that the tools may see. The rest, the age key among them, is not theirs.
var inherited = []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// given is what a run gives to the tools.
type given struct {
	cluster                                                       *Cluster
	access                                                        *Access
	way                                                           map[string]string // to the API
	described, backends, providers, events, inventory, encryption string
}

// secret is a secret's value, empty where there is none.
func (g *given) secret(name string) string {
	value, _ := g.access.Values.Get(name)
	return value
}

// variable is one variable of the environment that a run makes.
type variable struct {
	name  string
	value func(*given) string
	// tools are the layers whose OpenTofu, with its providers, gets it. Where none is said Terragrunt has it, and so has everything that runs
	// below: what is secret says some.
	tools []string
	// secret tells what of the value must not be shown, for who finds the variable in its environment; nil: nothing.
	secret func(value string) []string
	// has tells whether a cluster needs it; nil: each does.
	has func(*Cluster) bool
}

// whole marks a variable whose value is secret.
func whole(value string) []string { return []string{value} }

// Groups of layers that variables go to.
var (
	allLayers = []string{layers.Secrets, layers.Platform,
		layers.Engine, layers.Networking, layers.Storage, layers.GitOps}
	onPlatform     = []string{layers.Platform}
	inCluster      = []string{layers.Engine, layers.Networking, layers.Storage, layers.GitOps}
	readsInventory = []string{layers.Secrets, layers.GitOps}
)

// variables are all that a run gives to the tools, beside what they inherit.
var variables = []variable{
	// The tools look for settings of a user's own at home; a run has none.
	{name: "HOME", value: func(*given) string { return os.TempDir() }},

	{name: config.Variable, value: func(g *given) string { return g.described }},
	{name: VariableBackends, value: func(g *given) string { return g.backends }},
	{name: VariableProviders, value: func(g *given) string { return g.providers }},
	{name: VariableCharts, value: func(g *given) string { return g.cluster.Tools.Charts }},
	{name: VariableEvents, value: func(g *given) string { return g.events }},
	{name: VariableScaled, value: func(*given) string { return "true" }, has: func(c *Cluster) bool { return c.Scaled }},
	{name: VariableCertificates, value: func(g *given) string { return g.cluster.certificates },
		has: func(c *Cluster) bool { return c.certificates != "" }},
	{name: "TF_IN_AUTOMATION", value: func(*given) string { return "1" }},
	{name: "TF_INPUT", value: func(*given) string { return "0" }},
	{name: "CHECKPOINT_DISABLE", value: func(*given) string { return "1" }},
	// The tools and their providers, a hundred short processes in all, are written in Go, and a tenth of their processor time was the garbage
	// collector's. One that grows large collects as it would without the first.
	{name: "GOGC", value: func(*given) string { return "400" }},
	{name: "GOMEMLIMIT", value: func(*given) string { return "512MiB" }},

	// The tools ask the API through castle, with a key that is of use until the run ends (apiProxy). The administrator's
	// is castle's own.
	{name: kube.HostVariable, value: way(kube.HostVariable), tools: inCluster},
	{name: kube.CAVariable, value: way(kube.CAVariable), tools: inCluster},
	{name: kube.ClientCertVariable, value: way(kube.ClientCertVariable), tools: inCluster},
	{name: kube.ClientKeyVariable, value: way(kube.ClientKeyVariable), tools: inCluster, secret: whole},

	{name: "PROXMOX_VE_ENDPOINT", value: func(g *given) string { return g.cluster.Description.Proxmox.URL },
		tools: onPlatform},
	{name: "PROXMOX_VE_INSECURE", value: func(*given) string { return "true" }, tools: onPlatform,
		has: func(c *Cluster) bool { return c.Description.Proxmox.Insecure }},
	{name: variableProxmoxToken, value: func(g *given) string { return g.secret(secrets.ProxmoxAPIToken) },
		tools:  onPlatform,
		secret: secrets.TokenParts},

	{name: "TF_ENCRYPTION", value: func(g *given) string { return g.encryption },
		tools: allLayers, secret: secrets.EncryptionKeys},
	{name: variableAccessKey, value: func(g *given) string { return g.secret(secrets.AWSAccessKeyID) },
		tools:  allLayers,
		secret: whole, has: statesInS3},
	{name: variableSecretKey, value: func(g *given) string { return g.secret(secrets.AWSSecretAccessKey) },
		tools:  allLayers,
		secret: whole, has: statesInS3},
	{name: "TF_VAR_inventory", value: func(g *given) string { return g.inventory }, tools: readsInventory},
	// Of Infisical's identities only those that go into the cluster. Castle's own stays in its process.
	{name: "TF_VAR_infisical_flux_client_id", value: func(g *given) string { return g.secret(secrets.InfisicalFluxClientID) },
		tools: []string{layers.Engine}, secret: whole},
	{name: "TF_VAR_infisical_flux_client_secret",
		value: func(g *given) string { return g.secret(secrets.InfisicalFluxClientSecret) },
		tools: []string{layers.Engine}, secret: whole},
	{name: "TF_VAR_infisical_workloads_client_id",
		value: func(g *given) string { return g.secret(secrets.InfisicalWorkloadsClientID) },
		tools: []string{layers.Engine}, secret: whole},
	{name: "TF_VAR_infisical_workloads_client_secret",
		value: func(g *given) string { return g.secret(secrets.InfisicalWorkloadsClientSecret) },
		tools: []string{layers.Engine}, secret: whole},
}

func way(name string) func(*given) string { return func(g *given) string { return g.way[name] } }

func statesInS3(c *Cluster) bool { return c.Description.State.Backend == config.StateS3 }

// everybodys tells that Terragrunt itself has a variable, and with it all that it starts.
func (v variable) everybodys() bool { return v.tools == nil }

// LearnEnvironment has this process redact what a run gave it as secret. Gates within a layer are such processes, and so is
// Helm's postrenderer.
func LearnEnvironment() { redact.Add(secretsIn(os.Getenv)...) }

func secretsIn(getenv func(string) string) []string {
	var list []string
	for _, variable := range variables {
		if variable.secret != nil {
			list = append(list, variable.secret(getenv(variable.name))...)
		}
	}
	return list
}

// of are those variables that a choice is true for.
func (g *given) of(chosen func(variable) bool) []string {
	var list []string
	for _, variable := range variables {
		if chosen(variable) && (variable.has == nil || variable.has(g.cluster)) {
			list = append(list, variable.name+"="+strings.ReplaceAll(variable.value(g), "\x00", ""))
		}
	}
	return list
}

// everybodys is the environment of Terragrunt, which all that it starts inherits. Nothing in it is secret.
func (g *given) everybodys() []string {
	list := g.of(variable.everybodys)
	for _, name := range inherited {
		if value, has := os.LookupEnv(name); has {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// secrets are what a layer's tools get besides.
func (g *given) secrets(layer string) ([]string, error) {
	if !slices.Contains(allLayers, layer) {
		return nil, fmt.Errorf("there is no layer %q", layer)
	}
	return g.of(func(v variable) bool { return slices.Contains(v.tools, layer) }), nil
}

// forStates is the environment of OpenTofu where it reads a state: no provider runs. It is what all layers' tools
// have in common.
func (g *given) forStates() []string {
	return append(g.everybodys(), g.of(func(v variable) bool { return slices.Equal(v.tools, allLayers) })...)
}

// given is what a run has for the tools; way leads the tools to the API, nil where they ask it nothing.
func (c *Cluster) given(access *Access, events string, way map[string]string) (*given, error) {
	inventory, err := json.Marshal(access.Values.Inventory())
	if err != nil {
		return nil, err
	}
	encryption, err := access.encryption()
	if err != nil {
		return nil, err
	}
	remote, err := readsRemoteStates(c.Layers)
	if err != nil {
		return nil, err
	}
	if remote {
		encryption += secrets.RemoteStates
	}
	described, err := c.Description.HandOver()
	if err != nil {
		return nil, err
	}
	states, err := filepath.Abs(c.State)
	if err != nil {
		return nil, err
	}
	known, err := providers.Known(c.Layers, states)
	if err != nil {
		return nil, err
	}
	locks, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	backends, err := json.Marshal(state.Backends(c.Description, states))
	return &given{
		cluster: c, access: access, way: way,
		described: described, backends: string(backends), providers: string(locks), events: events, inventory: string(inventory), encryption: encryption,
	}, err
}

// readsRemoteStates tells whether a module in the folder of the layers reads the state of another one.
func readsRemoteStates(layers string) (reads bool, err error) {
	if layers == "" { // only states are looked at
		return false, nil
	}
	err = filepath.WalkDir(layers, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || reads || entry.IsDir() || filepath.Ext(name) != ".tf" {
			return err
		}
		text, err := os.ReadFile(name)
		reads = reads || bytes.Contains(text, []byte("terraform_remote_state"))
		return err
	})
	return reads, err
}
