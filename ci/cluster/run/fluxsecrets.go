package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	fluxapi "tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/secrets"
)

// fluxSecrets are the data of Flux's Secrets by their names. With Infisical the module gitops has External Secrets make the same.
var fluxSecrets = map[string]map[string]string{
	"flux-system": {"username": secrets.GitOpsUsername, "password": secrets.GitOpsToken, "ca.crt": secrets.GitOpsCA},
	"sops-age":    {"age.agekey": secrets.FluxAgeKey},
}

// fluxSecretsOf is the value of VariableFluxSecrets: the data of each Secret, JSON.
func fluxSecretsOf(values *secrets.Values) string {
	made := map[string]map[string]string{}
	for secret, data := range fluxSecrets {
		made[secret] = map[string]string{}
		for key, name := range data {
			if value, has := values.Get(name); has {
				made[secret][key] = value
			}
		}
	}
	text, _ := json.Marshal(made) // texts by name, which always can be encoded
	return string(text)
}

// fluxSecretsIn are what of that value must not be shown.
func fluxSecretsIn(text string) (hidden []string) {
	var made map[string]map[string]string
	if json.Unmarshal([]byte(text), &made) != nil {
		return []string{text}
	}
	return []string{made["flux-system"]["password"], made["sops-age"]["age.agekey"]}
}

// fieldManager is who the API server notes as the owner of what castle applies by itself.
const fieldManager = "castle"

// ApplySecrets makes Flux's Secrets as the SOPS files have them, and their namespace, where these are not as they should be. They are in no
// state, and go with the namespace.
func (h *Hook) ApplySecrets(ctx context.Context, layer string) error {
	if layer != layers.GitOps {
		return fmt.Errorf("layer %s has no Secrets that castle applies", layer)
	}
	var made map[string]map[string]string
	if err := json.Unmarshal([]byte(os.Getenv(VariableFluxSecrets)), &made); err != nil {
		return fmt.Errorf("%s is not what castle-cluster create gives", VariableFluxSecrets) // the parser's error would quote it
	}
	client, err := kube.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
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
