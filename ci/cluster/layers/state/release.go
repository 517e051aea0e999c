package state

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// inCluster are the providers whose resources are objects in the cluster, or steps on the way to them: they are gone when its machines are.
var inCluster = []string{"hashicorp/helm", "hashicorp/kubernetes", "alekc/kubectl", "builtin/terraform"}

// Release takes out of a layer's state what lives in the cluster, without removing it there, and gives its addresses. A copy of the state is
// kept. What lives elsewhere, such as a load balancer of a cloud, stays in the state.
func (s Store) Release(ctx context.Context, layer string, now time.Time) (released []string, err error) {
	held, err := s.pull(ctx, layer)
	if held == nil {
		return nil, err
	}
	all := held.summary().Resources
	for _, resource := range all {
		if slices.Contains(inCluster, resource.Provider) {
			released = append(released, resource.Address)
		}
	}
	switch {
	case len(released) == 0:
		return nil, nil
	case len(released) == len(all):
		// OpenTofu would stretch the passphrase once more for each of them.
		_, err := s.takeAway(ctx, layer, now)
		return released, err
	}
	if err := s.Copy(ctx, layer, now); err != nil {
		return nil, err
	}
	return released, s.takeOut(ctx, layer, released)
}

// takeOut takes resources out of a state by OpenTofu, which leaves the rest of it as it was.
func (s Store) takeOut(ctx context.Context, layer string, addresses []string) error {
	folder, done, err := s.open(layer)
	if err != nil || folder == "" {
		return err
	}
	defer done()
	tofu, err := s.tofu(ctx, folder)
	if err != nil {
		return err
	}
	// OpenTofu insists on a copy of its own beside a local state.
	scratch, err := os.MkdirTemp("", "backup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, address := range addresses {
		var options []tfexec.StateRmCmdOption
		if s.Bucket == nil {
			options = append(options, tfexec.Backup(filepath.Join(scratch, "backup")))
		} else {
			options = append(options, tfexec.Lock(false)) // castle holds it: locks.go
		}
		if err := tofu.StateRm(ctx, address, options...); err != nil {
			return fmt.Errorf("take %s out of the state of layer %s: %w", address, layer, err)
		}
	}
	return nil
}

// Types are the addresses' types of resources, each once with their number: "helm_release, 3 kubectl_manifest".
func Types(addresses []string) string {
	var order []string
	count := map[string]int{}
	for _, address := range addresses {
		parts := strings.Split(address, ".")
		if parts[0] == "module" && len(parts) > 2 {
			parts = parts[2:]
		}
		if count[parts[0]]++; count[parts[0]] == 1 {
			order = append(order, parts[0])
		}
	}
	for i, name := range order {
		if count[name] > 1 {
			order[i] = fmt.Sprintf("%d %s", count[name], name)
		}
	}
	return strings.Join(order, ", ")
}
