package run

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// adminTTL is how long the administrator's certificate of one run is good for. It is made in memory for each run.
const adminTTL = 24 * time.Hour

// Variables that castle's own commands read when a layer's hook calls them.
const (
	VariableState        = "CASTLE_STATE"
	VariableBackends     = "CASTLE_BACKENDS" // where each layer's state is kept, JSON
	VariableCharts       = "CASTLE_CHARTS"
	VariableProviders    = "CASTLE_PROVIDERS" // entries of lock files by provider and version, JSON
	VariableEvents       = "CASTLE_EVENTS"
	VariableTalosSecrets = "CASTLE_TALOS_SECRETS"
	VariableFluxSecrets  = "CASTLE_FLUX_SECRETS" // only without Infisical
	VariableScaled       = "CASTLE_SCALED"       // only in a sandbox whose delays are not a homelab's

	variableProxmoxToken = "PROXMOX_VE_API_TOKEN" // the provider's own
	variableAccessKey    = "AWS_ACCESS_KEY_ID"
	variableSecretKey    = "AWS_SECRET_ACCESS_KEY"
)

// inherited are the caller's variables that the tools may see. The rest, the age key among them, is not theirs.
var inherited = []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// given is what a run gives to the tools and the hooks.
type given struct {
	cluster                                                               *Cluster
	access                                                                *Access
	described, states, backends, providers, events, inventory, encryption string
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
	// secret tells what of the value must not be shown, for who finds the variable in its environment; nil: nothing.
	secret func(value string) []string
}

// whole marks a variable whose value is secret.
func whole(value string) []string { return []string{value} }

// variables are all that a run gives to the tools and the hooks, beside what they inherit.
var variables = []variable{
	// The tools look for settings of a user's own at home; a run has none.
	{"HOME", func(*given) string { return os.TempDir() }, nil},

	{description.Variable, func(g *given) string { return g.described }, nil},
	{VariableState, func(g *given) string { return g.states }, nil},
	{VariableBackends, func(g *given) string { return g.backends }, nil},
	{VariableProviders, func(g *given) string { return g.providers }, nil},
	{VariableCharts, func(g *given) string { return g.cluster.Tools.Charts }, nil},
	{VariableEvents, func(g *given) string { return g.events }, nil},
	{VariableTalosSecrets, func(g *given) string { return g.access.machines }, whole},

	// Terragrunt gives the tools another way, see toolsWay, and castle's hooks keep this one.
	{kube.HostVariable, host, nil}, {kube.CAVariable, ca, nil}, {kube.ClientCertVariable, cert, nil}, {kube.ClientKeyVariable, key, whole},
	{kube.Own(kube.HostVariable), host, nil}, {kube.Own(kube.CAVariable), ca, nil}, {kube.Own(kube.ClientCertVariable), cert, nil}, {kube.Own(kube.ClientKeyVariable), key, whole},

	{"PROXMOX_VE_ENDPOINT", func(g *given) string { return g.cluster.Description.Proxmox.URL }, nil},
	{variableProxmoxToken, func(g *given) string { return g.secret(secrets.ProxmoxAPIToken) }, secrets.TokenParts},

	{"TF_ENCRYPTION", func(g *given) string { return g.encryption }, secrets.EncryptionKeys},
	{"TF_IN_AUTOMATION", func(*given) string { return "1" }, nil},
	{"TF_INPUT", func(*given) string { return "0" }, nil},
	{"CHECKPOINT_DISABLE", func(*given) string { return "1" }, nil},
	// The tools and their providers, a hundred short processes in all, are written in Go, and a tenth of their processor time was the garbage
	// collector's. One that grows large collects as it would without the first.
	{"GOGC", func(*given) string { return "400" }, nil},
	{"GOMEMLIMIT", func(*given) string { return "512MiB" }, nil},
	{"TF_VAR_inventory", func(g *given) string { return g.inventory }, nil},
	{"TF_VAR_infisical_client_id", func(g *given) string { return g.secret(secrets.InfisicalClientID) }, whole},
	{"TF_VAR_infisical_client_secret", func(g *given) string { return g.secret(secrets.InfisicalClientSecret) }, whole},
}

// host, ca, cert and key are the administrator's way to the cluster's API.
func host(g *given) string { return g.access.Kube.Host }
func ca(g *given) string   { return string(g.access.Kube.CA) }
func cert(g *given) string { return string(g.access.Kube.Cert) }
func key(g *given) string  { return string(g.access.Kube.Key) }

// insecure, scaled, certificates, flux and s3 are variables that some clusters need.
var (
	scaled       = variable{VariableScaled, func(*given) string { return "true" }, nil}
	insecure     = variable{"PROXMOX_VE_INSECURE", func(*given) string { return "true" }, nil}
	certificates = variable{VariableCertificates, func(g *given) string { return g.cluster.certificates }, nil}
	flux         = variable{VariableFluxSecrets, func(g *given) string { return fluxSecretsOf(g.access.Values) }, fluxSecretsIn}
	s3           = []variable{
		{variableAccessKey, func(g *given) string { return g.secret(secrets.AWSAccessKeyID) }, whole},
		{variableSecretKey, func(g *given) string { return g.secret(secrets.AWSSecretAccessKey) }, whole},
	}
)

// LearnEnvironment has this process redact what a run gave it as secret. The hooks are such processes, and so is Helm's
// postrenderer.
func LearnEnvironment() { redact.Add(secretsIn(os.Getenv)...) }

func secretsIn(getenv func(string) string) []string {
	var list []string
	for _, variable := range slices.Concat(variables, []variable{flux}, s3) {
		if variable.secret != nil {
			list = append(list, variable.secret(getenv(variable.name))...)
		}
	}
	return list
}

// environment is the whole environment of Terragrunt, the tools and the hooks. It is the way that secrets take to them.
func (c *Cluster) environment(access *Access, events string) ([]string, error) {
	g, err := c.given(access, events)
	if err != nil {
		return nil, err
	}
	list := variables
	if !c.Description.Secrets.Infisical.Has() {
		list = append(slices.Clip(list), flux)
	}
	if c.Description.Proxmox.Insecure {
		list = append(slices.Clip(list), insecure)
	}
	if c.Scaled {
		list = append(slices.Clip(list), scaled)
	}
	if c.certificates != "" {
		list = append(slices.Clip(list), certificates)
	}
	if c.Description.State.Backend == description.StateS3 {
		list = append(slices.Clip(list), s3...)
	}
	var environment []string
	for _, variable := range list {
		environment = append(environment, variable.name+"="+strings.ReplaceAll(variable.value(g), "\x00", ""))
	}
	for _, name := range inherited {
		if value, has := os.LookupEnv(name); has {
			environment = append(environment, name+"="+value)
		}
	}
	return environment, nil
}

func (c *Cluster) given(access *Access, events string) (*given, error) {
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
		cluster: c, access: access,
		described: described, states: states, backends: string(backends), providers: string(locks), events: events, inventory: string(inventory), encryption: encryption,
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
