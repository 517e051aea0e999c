package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// adoptFile gives OpenTofu, in the folder that it runs in, the value of the variable adopt: what is there already, for the import
// blocks of the modules. One whose resource is in the state changes nothing; one whose resource is in no state, because the
// state was lost or a kill came before it was written, keeps OpenTofu from making a second one.
const adoptFile = "adopt.auto.tfvars.json"

// credentials are the Secrets of the layer engine, which its provider refuses to make where they are there. Everything else in the cluster
// is applied, or installed by Helm, over what is there.
var credentials = struct {
	namespace string
	names     []string
}{"external-secrets", []string{"infisical-credentials", "infisical-flux-credentials"}}

// adoption is what of a layer is there already; nil where nothing of it could be imported.
func (c *Cluster) adoption(ctx context.Context, access *Access, layer string) (any, error) {
	switch {
	case layer == layers.Platform && c.Description.MakesMachines():
		machines := c.Hypervisor(access)
		defer machines.Close()
		return machines.Finished(ctx)
	case layer == layers.Engine:
		return credentialsThere(ctx, access)
	}
	return nil, nil
}

// adopt tells OpenTofu, which is about to run in a folder, of that.
func adopt(folder string, there any) error {
	if there == nil {
		return nil
	}
	data, err := json.Marshal(map[string]any{"adopt": there})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, adoptFile), data, 0o600)
}

func credentialsThere(ctx context.Context, access *Access) ([]string, error) {
	client, err := access.API()
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	there := []string{}
	for _, name := range credentials.names {
		err = client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) error {
			_, err := typed.CoreV1().Secrets(credentials.namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("look for the Secret %s/%s: %w", credentials.namespace, name, err)
		default:
			there = append(there, credentials.namespace+"/"+name)
		}
	}
	return there, nil
}
