package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/kube"
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
	VariableEvents       = "CASTLE_EVENTS"
	VariableTalosSecrets = "CASTLE_TALOS_SECRETS"
)

// inherited are the caller's variables that the tools may see. The rest, the age key among them, is not theirs.
var inherited = []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// environment is the whole environment of Terragrunt, the tools and the hooks. It is the way that secrets take to them.
func (c *Cluster) environment(access *Access, events string) ([]string, error) {
	value := func(name string) string {
		value, _ := access.Values.Get(name)
		return value
	}
	inventory, err := json.Marshal(access.Values.Inventory())
	if err != nil {
		return nil, err
	}
	encryption, err := access.encryption()
	if err != nil {
		return nil, err
	}
	described, err := c.Description.HandOver()
	if err != nil {
		return nil, err
	}
	states, err := filepath.Abs(c.State)
	if err != nil {
		return nil, err
	}
	backends, err := json.Marshal(state.Backends(c.Description, states))
	if err != nil {
		return nil, err
	}
	environment := map[string]string{
		// The tools look for settings of a user's own at home; a run has none.
		"HOME": os.TempDir(),

		description.Variable: described,
		VariableState:        states,
		VariableBackends:     string(backends),
		VariableCharts:       c.Tools.Charts,
		VariableEvents:       events,
		VariableTalosSecrets: access.machines,

		kube.HostVariable:       access.Kube.Host,
		kube.CAVariable:         string(access.Kube.CA),
		kube.ClientCertVariable: string(access.Kube.Cert),
		kube.ClientKeyVariable:  string(access.Kube.Key),

		"PROXMOX_VE_ENDPOINT":  c.Description.Proxmox.URL,
		"PROXMOX_VE_API_TOKEN": value(secrets.ProxmoxAPIToken),

		"TF_ENCRYPTION":                  encryption,
		"TF_IN_AUTOMATION":               "1",
		"TF_INPUT":                       "0",
		"CHECKPOINT_DISABLE":             "1",
		"TF_VAR_inventory":               string(inventory),
		"TF_VAR_infisical_client_id":     value(secrets.InfisicalClientID),
		"TF_VAR_infisical_client_secret": value(secrets.InfisicalClientSecret),
	}
	if c.Description.Proxmox.Insecure {
		environment["PROXMOX_VE_INSECURE"] = "true"
	}
	if c.Description.State.Backend == description.StateS3 {
		environment["AWS_ACCESS_KEY_ID"] = value(secrets.AWSAccessKeyID)
		environment["AWS_SECRET_ACCESS_KEY"] = value(secrets.AWSSecretAccessKey)
	}
	for _, name := range inherited {
		if value, has := os.LookupEnv(name); has {
			environment[name] = value
		}
	}
	list := make([]string, 0, len(environment))
	for name, value := range environment {
		list = append(list, name+"="+strings.ReplaceAll(value, "\x00", ""))
	}
	return list, nil
}
