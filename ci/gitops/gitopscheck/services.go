package gitopscheck

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// network is what a cluster's routes can lead to.
type network struct {
	services map[[2]string]*manifests.Object // by namespace and name
	pods     map[string][]podPorts           // by namespace
	open     map[string]bool                 // namespaces in which a chart or an operator makes Services and pods, which are not known
}

// podPorts is a template of pods with the ports that its containers declare.
type podPorts struct {
	of     manifests.ID
	labels labels.Set
	ports  []containerPort
}

type containerPort struct {
	name   string
	number int64
}

// harmless are groups whose custom resources make neither Services nor pods. Of all others that is not known.
var harmless = []string{
	"traefik.io", "traefik.containo.us", "cert-manager.io", "acme.cert-manager.io", "external-secrets.io", "generators.external-secrets.io", "monitoring.coreos.com",
	"gateway.networking.k8s.io", "metallb.io", "cilium.io", "volsync.backube", "snapshot.storage.k8s.io", "bitnami.com", "kyverno.io", "externaldns.k8s.io",
	"notification.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "image.toolkit.fluxcd.io", "longhorn.io", "apiextensions.k8s.io", "grafana.integreatly.org",
}

// makers are kinds of harmless groups that make pods and Services all the same.
var makers = []string{"Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler", "Gateway", "Grafana"}

func (c *check) network(objects []*manifests.Object) *network {
	n := &network{services: map[[2]string]*manifests.Object{}, pods: map[string][]podPorts{}, open: map[string]bool{
		"flux-system": true, // Flux came with the cluster, its webhook-receiver too
	}}
	for _, object := range objects {
		namespace, group := namespaceOf(object), manifests.GroupOf(object.GetAPIVersion())
		switch {
		case object.Is("", "Service"):
			n.services[[2]string{namespace, object.GetName()}] = object
		case isRelease(object):
			n.open[orElse(manifests.Text(object.Object, "spec", "targetNamespace"), namespace)] = true
		case object.Is(fluxtree.KustomizeGroup, "Kustomization"):
			// What it applies is among these objects, unless it comes from another repository.
		case !c.schemas.Builtin(group) && (!slices.Contains(harmless, group) || slices.Contains(makers, object.GetKind())):
			n.open[namespace] = true
		}
		if at := podTemplate(object); at != nil {
			n.pods[namespace] = append(n.pods[namespace], podPortsOf(object, at))
		}
	}
	return n
}

// namespaceOf is an object's, which is default where it names none.
func namespaceOf(object *manifests.Object) string { return orElse(object.GetNamespace(), "default") }

func podPortsOf(object *manifests.Object, at []string) podPorts {
	found := podPorts{of: object.ID(), labels: labels.Set{}}
	for name, value := range manifests.Map(object.Object, append(slices.Clone(at), "metadata", "labels")...) {
		found.labels[name] = fmt.Sprint(value)
	}
	for _, list := range []string{"containers", "initContainers"} { // an init container can be a sidecar
		for _, container := range manifests.List(object.Object, append(slices.Clone(at), "spec", list)...) {
			for _, port := range manifests.List(container, "ports") {
				number, _ := manifests.Value(port, "containerPort").(int64)
				found.ports = append(found.ports, containerPort{manifests.Text(port, "name"), number})
			}
		}
	}
	return found
}

// selected are the pods that a Service selects; unknown says that it selects by hand, or that others than these may be there.
func (n *network) selected(service *manifests.Object) (pods []podPorts, unknown bool) {
	selector := manifests.Map(service.Object, "spec", "selector")
	if len(selector) == 0 || manifests.Text(service.Object, "spec", "type") == "ExternalName" || hasUnknown(selector) {
		return nil, true
	}
	set := labels.Set{}
	for name, value := range selector {
		set[name] = fmt.Sprint(value)
	}
	for _, pod := range n.pods[namespaceOf(service)] {
		if set.AsSelector().Matches(pod.labels) {
			pods = append(pods, pod)
		}
	}
	return pods, n.open[namespaceOf(service)]
}

// service looks whether each port of a Service leads to one of a container. Where containers declare no ports at all, or a
// Service stands in a namespace with pods that are not known, nothing can be said.
func (c *check) service(n *network, service *manifests.Object, whole bool) {
	pods, unknown := n.selected(service)
	if len(pods) == 0 {
		if !unknown && whole {
			c.on(service, []string{"spec", "selector"}, ruleWrongPort, service.ID().String(), "%s selects no pods: nothing in the repository has the labels of its selector", service.ID())
		}
		return
	}
	for i, port := range manifests.List(service.Object, "spec", "ports") {
		at := []string{"spec", "ports", strconv.Itoa(i)}
		target := manifests.Value(port, "targetPort")
		if target == nil {
			target = manifests.Value(port, "port")
		}
		if hasUnknown(target) || target == nil || slices.ContainsFunc(pods, func(pod podPorts) bool { return pod.has(target) }) {
			continue
		}
		c.on(service, at, ruleWrongPort, service.ID().String(), "%s: port %v leads to %v, and %s %s: make them agree", service.ID(), orNothing(manifests.Value(port, "port")), target, pods[0].of, pods[0].declared())
	}
}

// has says that a port, by number or name, is one of the pod's, or may be: only names have to be declared.
func (p podPorts) has(target any) bool {
	number, isNumber := target.(int64)
	if isNumber && len(p.ports) == 0 {
		return true
	}
	return slices.ContainsFunc(p.ports, func(port containerPort) bool {
		return isNumber && port.number == number || !isNumber && port.name != "" && port.name == target
	})
}

func (p podPorts) declared() string {
	if len(p.ports) == 0 {
		return "declares no ports"
	}
	text := "has only"
	for i, port := range p.ports {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", port.number)
		if port.name != "" {
			text += " (" + port.name + ")"
		}
	}
	return text
}
