package gitopsrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secret is a Secret of the cluster whose values only the user has.
type secret struct {
	Name, Namespace string
	Part            string
	Entries         []entry
	Registry        string // of an image pull secret, "" for any other
}

// entry is one value of a Secret.
type entry struct {
	Key      string // in the Secret
	Variable string // in Infisical, and in the README's commands
	What     string
}

// secrets are those of all parts. Those of a pull secret are made into its one key.
var secrets = []secret{
	{Name: "registry", Namespace: "blog", Part: PullSecret, Entries: []entry{
		{"username", "REGISTRY_PULL_USERNAME", "a user of the blog's registry"},
		{"password", "REGISTRY_PULL_PASSWORD", "that user's password or token, which may read and nothing else"},
	}},
	{Name: "grafana-admin", Namespace: "monitoring", Part: Monitoring, Entries: []entry{
		{"admin-user", "GRAFANA_ADMIN_USER", "the name of Grafana's administrator"},
		{"admin-password", "GRAFANA_ADMIN_PASSWORD", "that administrator's password"},
	}},
	{Name: "flux-alerts", Namespace: "flux-system", Part: Notifications, Entries: []entry{
		{"address", "ALERT_WEBHOOK_URL", "the address that takes Flux's messages"},
	}},
	{Name: "flux-receiver", Namespace: "flux-system", Part: Notifications, Entries: []entry{
		{"token", "FLUX_WEBHOOK_TOKEN", "what the Git host signs its calls with: openssl rand -hex 32"},
	}},
	{Name: "etcd-backup-talosconfig", Namespace: "etcd-backup", Part: EtcdBackup, Entries: []entry{
		{"talosconfig", "ETCD_BACKUP_TALOSCONFIG", "a talosconfig of the role os:etcd:backup, which ends with its certificate"},
	}},
	{Name: "etcd-backup", Namespace: "etcd-backup", Part: EtcdBackup, Entries: []entry{
		{"RESTIC_PASSWORD", "ETCD_BACKUP_PASSWORD", "what the backups are encrypted with; keep a copy that is not on this cluster"},
		{"AWS_ACCESS_KEY_ID", "ETCD_BACKUP_S3_ACCESS_KEY", "the key of the backups' bucket"},
		{"AWS_SECRET_ACCESS_KEY", "ETCD_BACKUP_S3_SECRET_KEY", "the secret of that key"},
	}},
	{Name: "actions-runners", Namespace: "actions-runners", Part: ActionsRunners, Entries: []entry{
		{"github_token", "GITHUB_RUNNER_TOKEN", "a token that may register runners: administration of the repository, or self-hosted runners of the organization"},
	}},
}

// Command makes the Secret by kubectl and encrypts it, without a file that has it in clear. Its values come by the environment.
func (s secret) Command(cluster string) string {
	kind, flags := "generic", make([]string, len(s.Entries))
	for i, e := range s.Entries {
		flags[i] = fmt.Sprintf(`--from-literal=%s="$%s"`, e.Key, e.Variable)
	}
	if s.Registry != "" {
		kind, flags = "docker-registry", []string{"--docker-server=" + s.Registry, `--docker-username="$REGISTRY_PULL_USERNAME"`, `--docker-password="$REGISTRY_PULL_PASSWORD"`}
	}
	file := fmt.Sprintf("secrets/%s/%s.sops.yaml", cluster, s.Name)
	return fmt.Sprintf("kubectl create secret %s %s --namespace=%s --dry-run=client --output=yaml \\\n    %s |\n  sops encrypt --filename-override=%s /dev/stdin > %s",
		kind, s.Name, s.Namespace, strings.Join(flags, " \\\n    "), file, file)
}

// recipientsIn are the public age keys that the SOPS files of a cluster's folder are encrypted for, each once. A file that is
// not there has none.
func recipientsIn(folder string, files []string) ([]string, error) {
	var keys []string
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var document struct {
			SOPS struct {
				Age []struct {
					Recipient string `yaml:"recipient"`
				} `yaml:"age"`
			} `yaml:"sops"`
		}
		if err := yaml.Unmarshal(data, &document); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", name, err)
		}
		for _, key := range document.SOPS.Age {
			if !slices.Contains(keys, key.Recipient) {
				keys = append(keys, key.Recipient)
			}
		}
	}
	return keys, nil
}
