package machineconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"tazlab.net/castle/ci/cluster/config"
)

// withPatches applies the description's patches to a node's configuration, one after the other, and says which of them Talos would not take.
func withPatches(c *config.Cluster, node config.Node, provider talosconfig.Provider) (talosconfig.Provider, error) {
	for _, one := range c.PatchesOf(node) {
		wrong := func(err error) error { return fmt.Errorf("%s: %s: %w", one.Place(1), one.Name, oneLine(err)) }
		patch, err := configpatcher.LoadPatch([]byte(one.Text()))
		if err != nil {
			return nil, wrong(err)
		}
		strategic, is := patch.(configpatcher.StrategicMergePatch)
		if !is {
			return nil, wrong(errors.New("it is a JSON patch; write a strategic merge patch, such as {machine: {sysctls: {…}}}"))
		}
		if provider, err = configpatcher.StrategicMerge(provider, strategic); err != nil {
			return nil, wrong(err)
		}
		if _, err := provider.Validate(virtualMachine{}); err != nil {
			return nil, wrong(err)
		}
	}
	return provider, nil
}

// counted is how machinery's lists of errors begin.
var counted = regexp.MustCompile(`\d+ errors? occurred:`)

// oneLine puts an error of machinery's, which lists what it has found on lines of their own, on one.
func oneLine(err error) error {
	var parts []string
	for line := range strings.Lines(counted.ReplaceAllString(err.Error(), "")) {
		if line = strings.Trim(strings.TrimSpace(line), "* "); line != "" {
			parts = append(parts, line)
		}
	}
	return errors.New(strings.Join(parts, " "))
}

// Check says what Talos would not take of the description's patches, before there are any secrets: a line for each, which is said once where
// several nodes have the same patch.
func Check(c *config.Cluster) error {
	has := false
	for _, node := range c.Nodes {
		has = has || len(c.PatchesOf(node)) > 0
	}
	if !has || c.Unready() != nil { // of a platform whose configurations are not made, what Talos says of them is not known
		return nil
	}
	_, _, err := machineConfigs(c, blank())
	if err == nil {
		return nil
	}
	var lines []error
	seen := map[string]bool{}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if _, after, is := strings.Cut(line, ofNode); is { // of whichever node it is
			if _, after, is = strings.Cut(after, ": "); is {
				line = after
			}
		}
		if !seen[line] {
			seen[line] = true
			lines = append(lines, errors.New(line))
		}
	}
	return errors.Join(lines...)
}

// blank is a bundle of the shape of a cluster's, in which nothing is secret: to make one takes a second, and Talos's own check of a
// configuration looks at its shape alone.
var blank = sync.OnceValue(func() *Bundle {
	pair := &x509.PEMEncodedCertificateAndKey{Crt: []byte("certificate"), Key: []byte("key")}
	return &Bundle{
		Clock: secrets.NewFixedClock(time.Unix(0, 0)), Cluster: &secrets.Cluster{ID: "id", Secret: "secret"},
		Secrets:    &secrets.Secrets{BootstrapToken: "bootstrap.token", SecretboxEncryptionSecret: "secretbox"},
		TrustdInfo: &secrets.TrustdInfo{Token: "trustd.token"},
		Certs: &secrets.Certs{Etcd: pair, K8s: pair, K8sAggregator: pair, OS: pair,
			K8sServiceAccount: &x509.PEMEncodedKey{Key: []byte("key")}},
	}
})
