package postrender

import (
	"context"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// server is a webhook's, as its chart and the certificate controller of its program know it.
type server struct {
	label [2]string // of the Secret that the certificate is mounted from, where the chart gives it one
	name  string    // of the Secret, where it does not
	// service is what the API server calls; "" where it is called as the Secret is.
	service string
	// authority and organization are the names of the authority: one of another name is replaced.
	authority, organization string
	// untold: nobody tells the API server of the authority before a certificate is made.
	untold bool
}

// beforehand gives a webhook's server its certificate before it starts. Else its program makes one when it runs, and has it only when the kubelet
// looks at the pod's volumes again, up to a minute and a half later. The program renews it later like one of its own. What the cluster has
// already is kept.
func (s server) beforehand(ctx context.Context, cluster Cluster, objects []object) error {
	var secret object
	for _, o := range objects {
		if o.GetKind() == "Secret" && s.is(o) {
			secret = o
		}
	}
	if secret == nil {
		return fmt.Errorf("there is no Secret %s among them: the chart makes its webhook's certificate otherwise than castle knows; look for the version in terragrunt/charts.yaml", s.secret())
	}
	data, err := cluster.Secret(ctx, secret.GetNamespace(), secret.GetName())
	if err != nil {
		return err
	}
	service := s.service
	if service == "" {
		service = secret.GetName()
	}
	if !complete(data) {
		if data, err = newCertificate(s.authority, s.organization, service+"."+secret.GetNamespace()+".svc"); err != nil {
			return err
		}
	}
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	secret.Object["data"] = encoded
	if !s.untold {
		return nil
	}
	return trust(objects, service, encoded[authorityFile])
}

func (s server) is(secret object) bool {
	if s.name != "" {
		return secret.GetName() == s.name
	}
	return secret.GetLabels()[s.label[0]] == s.label[1]
}

// secret says which one it is.
func (s server) secret() string {
	if s.name != "" {
		return s.name
	}
	return "with the label " + s.label[0] + "=" + s.label[1]
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
