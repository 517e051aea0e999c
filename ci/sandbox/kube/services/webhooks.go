//go:build linux

package services

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
)

// webhooks knows the Services that the API server calls.
type webhooks struct {
	validating admissionlisters.ValidatingWebhookConfigurationLister
	mutating   admissionlisters.MutatingWebhookConfigurationLister
	informers  []cache.SharedIndexInformer
}

func newWebhooks(factory informers.SharedInformerFactory) *webhooks {
	validating := factory.Admissionregistration().V1().ValidatingWebhookConfigurations()
	mutating := factory.Admissionregistration().V1().MutatingWebhookConfigurations()
	return &webhooks{
		validating: validating.Lister(), mutating: mutating.Lister(),
		informers: []cache.SharedIndexInformer{validating.Informer(), mutating.Informer()},
	}
}

// webhookPrefix is how the ports of webhooks are named by the projects that have one; it counts where a chart installs
// the webhook's configuration later than its pod.
const webhookPrefix = "webhook"

func (w *webhooks) isWebhook(service *corev1.Service) bool {
	for _, port := range service.Spec.Ports {
		if strings.HasPrefix(port.TargetPort.StrVal, webhookPrefix) || strings.HasPrefix(port.Name, webhookPrefix) {
			return true
		}
	}
	named := func(client admissionv1.WebhookClientConfig) bool {
		return client.Service != nil && client.Service.Name == service.Name && client.Service.Namespace == service.Namespace
	}
	validating, _ := w.validating.List(labels.Everything())
	for _, configuration := range validating {
		if slices.ContainsFunc(configuration.Webhooks, func(hook admissionv1.ValidatingWebhook) bool { return named(hook.ClientConfig) }) {
			return true
		}
	}
	mutating, _ := w.mutating.List(labels.Everything())
	for _, configuration := range mutating {
		if slices.ContainsFunc(configuration.Webhooks, func(hook admissionv1.MutatingWebhook) bool { return named(hook.ClientConfig) }) {
			return true
		}
	}
	return false
}

func portNamed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool {
			return strings.HasPrefix(port.Name, webhookPrefix)
		})
	})
}
