package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	fluxapi "tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/secrets"
)

// fluxSecrets are the data of Flux's Secrets by their names. With Infisical the module gitops has External Secrets make the same.
var fluxSecrets = map[string]map[string]string{
	"flux-system": {"username": secrets.GitOpsUsername, "password": secrets.GitOpsToken, "ca.crt": secrets.GitOpsCA},
	"sops-age":    {"age.agekey": secrets.FluxAgeKey},
}

// fluxSecretsOf are the data of each Secret.
func fluxSecretsOf(values *secrets.Values) map[string]map[string]string {
	made := map[string]map[string]string{}
	for secret, data := range fluxSecrets {
		made[secret] = map[string]string{}
		for key, name := range data {
			if value, has := values.Get(name); has {
				made[secret][key] = value
			}
		}
	}
	return made
}

// fieldManager is who the API server notes as the owner of what castle applies by itself.
const fieldManager = "castle"

// applyFluxSecrets makes Flux's Secrets as the SOPS files have them, and their namespace, where these are not as they should be. They are in
// no state, and go with the namespace.
func applyFluxSecrets(ctx context.Context, access *Access) error {
	made := fluxSecretsOf(access.Values)
	client, err := access.API()
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	force := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	err = client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) error {
		_, err := typed.CoreV1().Namespaces().Apply(ctx, corev1.Namespace(fluxapi.Namespace), force)
		return err
	})
	if err != nil {
		return fmt.Errorf("apply the namespace %s: %w", fluxapi.Namespace, err)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		data := map[string][]byte{}
		for key, value := range made[name] {
			data[key] = []byte(value)
		}
		err := client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) error {
			_, err := typed.CoreV1().Secrets(fluxapi.Namespace).Apply(ctx, corev1.Secret(name, fluxapi.Namespace).WithData(data), force)
			return err
		})
		if err != nil {
			return fmt.Errorf("apply the Secret %s/%s: %w", fluxapi.Namespace, name, err)
		}
	}
	return nil
}
