// Package secretadmin is what a person does with the sources of a cluster's secrets: begin them, look whether all is there, and change the key of
// the SOPS files. No value is ever shown.
package secretadmin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// Begin makes the PKI of a cluster without Infisical, and writes it into the folder out as the one SOPS file of cluster.yaml that is not
// there yet. It is encrypted as the other files are, or to the key given where there are none. A PKI that is there is never made a second time.
// The text says what to do with the file.
func Begin(cluster *run.Cluster, out string) (string, error) {
	described, err := config.Load(cluster.Folder)
	if err != nil {
		return "", err
	}
	if described.Secrets.Infisical.Has() {
		return "", fmt.Errorf("cluster %s keeps its PKI in Infisical, where the first create makes it: secrets-init is for clusters with infisical: none", described.Name)
	}
	name, recipients, err := missingFile(cluster, described)
	if err != nil {
		return "", err
	}
	pki, err := machineconfig.NewSecrets(described)
	if err != nil {
		return "", err
	}
	redact.Add(string(pki))
	clear, err := yaml.Marshal(map[string]string{secrets.TalosSecrets: string(pki)})
	if err != nil {
		return "", err
	}
	data, err := sopsfile.Encrypt(name, clear, recipients)
	if err != nil {
		return "", err
	}
	file := filepath.Join(out, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	if err := renameio.WriteFile(file, data, 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s holds the PKI of cluster %s, encrypted to %s: put it beside cluster.yaml and commit it before the cluster is created, which is lost without it\n",
		name, described.Name, strings.Join(recipients, " and ")), nil
}

// missingFile is the file that is named and not there, and whom the others are encrypted to. None of these may hold a PKI.
func missingFile(cluster *run.Cluster, described *config.Cluster) (missing string, recipients []string, err error) {
	var absent []string
	var failures []error
	for _, name := range described.Secrets.SOPS {
		file := filepath.Join(cluster.Folder, name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, name)
			continue
		}
		names, to, err := secrets.Names(file, cluster.AgeKey)
		switch {
		case err != nil:
			failures = append(failures, err)
		case slices.Contains(names, secrets.TalosSecrets):
			failures = append(failures, fmt.Errorf("%s holds %s already, and nothing was made: what was built with it would be lost with another", file, secrets.TalosSecrets))
		}
		for _, recipient := range to {
			if !slices.Contains(recipients, recipient) {
				recipients = append(recipients, recipient)
			}
		}
	}
	switch {
	case len(failures) > 0:
	case len(absent) == 0:
		failures = append(failures, errors.New("every file of secrets.sops is there: add a name for the PKI's to the list in cluster.yaml, such as talos.secrets.sops.yaml"))
	case len(absent) > 1:
		failures = append(failures, fmt.Errorf("%s are named in secrets.sops and not there: write the others first, the one that is missing then is made for the PKI", strings.Join(absent, " and ")))
	case len(recipients) == 0:
		recipients, err = sopsfile.Recipients(cluster.AgeKey)
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return "", nil, err
	}
	return absent[0], recipients, nil
}
