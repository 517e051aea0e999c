package postrender

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// earlyReadiness lets a pod be asked soon and often whether it is ready. The chart of External Secrets Operator gives its
// webhook and its certificate controller 20 s before the first look; everything that needs a secret would wait for it.
func earlyReadiness(_ context.Context, _ Lookup, objects []object) error {
	for _, o := range objects {
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			return err
		}
		for _, container := range containers {
			if probe, has, _ := unstructured.NestedMap(container.(map[string]any), "readinessProbe"); has {
				probe["initialDelaySeconds"], probe["periodSeconds"] = int64(1), int64(2)
				container.(map[string]any)["readinessProbe"] = probe
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return err
		}
	}
	return nil
}

// certificateBeforehand gives the webhook of External Secrets Operator its certificate, and the API server the authority to
// check it by. Else the operator's certificate controller makes one after both are started, and the webhook looks for it
// every ten seconds only. The controller renews it later like one of its own. What the cluster has already is kept.
func certificateBeforehand(ctx context.Context, lookup Lookup, objects []object) error {
	var secret object
	for _, o := range objects {
		if o.GetKind() == "Secret" && o.GetLabels()["external-secrets.io/component"] == "webhook" {
			secret = o
		}
	}
	if secret == nil {
		return errors.New("there is no Secret with the label external-secrets.io/component=webhook among them: the chart makes its webhook's certificate otherwise than castle knows; look for the version in terragrunt/charts.yaml")
	}
	data, err := lookup(ctx, secret.GetNamespace(), secret.GetName())
	if err != nil {
		return err
	}
	if !complete(data) {
		// The chart calls the Secret and the Service alike.
		if data, err = newCertificate(secret.GetName() + "." + secret.GetNamespace() + ".svc"); err != nil {
			return err
		}
	}
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	secret.Object["data"] = encoded
	return trust(objects, secret.GetName(), encoded[authorityFile])
}

// trust names the authority in all webhooks of the service.
func trust(objects []object, service string, authority any) error {
	named := 0
	for _, o := range objects {
		if o.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, webhook := range webhooks {
			fields := webhook.(map[string]any)
			if name, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "name"); name != service {
				continue
			}
			if err := unstructured.SetNestedField(fields, authority, "clientConfig", "caBundle"); err != nil {
				return err
			}
			named++
		}
		if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
			return err
		}
	}
	if named == 0 {
		return fmt.Errorf("no webhook among them calls the Service %s", service)
	}
	return nil
}
