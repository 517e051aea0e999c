package gitopscheck

import (
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// routes follows the way of a request: from an Ingress, a route of the Gateway API or of Traefik to a Service, and from each Service to
// the ports of the containers that it selects.
func (c *check) routes() {
	for _, cluster := range c.repository.Clusters {
		c.routesIn(cluster.Objects(), !broken(cluster))
	}
}

func (c *check) routesIn(objects []*manifests.Object, whole bool) {
	n := c.network(objects)
	for _, object := range objects {
		for _, backend := range backendsOf(object) {
			c.backend(n, object, backend, whole)
		}
		if object.Is("", "Service") {
			c.service(n, object, whole)
		}
	}
}

// backend is where a route leads to: a port of a Service, by name or by number.
type backend struct {
	at              []string // in the route
	namespace, name string
	port            any // nil: none is named
}

var (
	gatewayRoutes = []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"}
	traefikRoutes = []string{"IngressRoute", "IngressRouteTCP", "IngressRouteUDP"}
)

func backendsOf(object *manifests.Object) []backend {
	group, kind, namespace := manifests.GroupOf(object.GetAPIVersion()), object.GetKind(), namespaceOf(object)
	var all []backend
	switch {
	case group == "networking.k8s.io" && kind == "Ingress":
		add := func(at ...string) {
			service := manifests.Map(object.Object, append(slices.Clone(at), "service")...)
			if service != nil {
				port := manifests.Value(service, "port", "number")
				if port == nil {
					port = manifests.Value(service, "port", "name")
				}
				all = append(all, backend{append(at, "service"), namespace, manifests.Text(service, "name"), port})
			}
		}
		add("spec", "defaultBackend")
		for i, rule := range manifests.List(object.Object, "spec", "rules") {
			for j := range manifests.List(rule, "http", "paths") {
				add("spec", "rules", strconv.Itoa(i), "http", "paths", strconv.Itoa(j), "backend")
			}
		}
	case group == "gateway.networking.k8s.io" && slices.Contains(gatewayRoutes, kind):
		for i, rule := range manifests.List(object.Object, "spec", "rules") {
			for j, reference := range manifests.List(rule, "backendRefs") {
				if orElse(manifests.Text(reference, "kind"), "Service") == "Service" && manifests.Text(reference, "group") == "" {
					all = append(all, backend{[]string{"spec", "rules", strconv.Itoa(i), "backendRefs", strconv.Itoa(j)},
						orElse(manifests.Text(reference, "namespace"), namespace), manifests.Text(reference, "name"), manifests.Value(reference, "port")})
				}
			}
		}
	case (group == "traefik.io" || group == "traefik.containo.us") && slices.Contains(traefikRoutes, kind):
		for i, route := range manifests.List(object.Object, "spec", "routes") {
			for j, service := range manifests.List(route, "services") {
				// name@provider is nothing of Kubernetes
				if orElse(manifests.Text(service, "kind"), "Service") == "Service" && !strings.Contains(manifests.Text(service, "name"), "@") {
					all = append(all, backend{[]string{"spec", "routes", strconv.Itoa(i), "services", strconv.Itoa(j)},
						orElse(manifests.Text(service, "namespace"), namespace), manifests.Text(service, "name"), manifests.Value(service, "port")})
				}
			}
		}
	}
	return all
}

// backend looks whether a Service and its port are there.
func (c *check) backend(n *network, route *manifests.Object, to backend, whole bool) {
	if hasUnknown(to.name) || hasUnknown(to.namespace) || hasUnknown(to.port) {
		return
	}
	service := n.services[[2]string{to.namespace, to.name}]
	if service == nil {
		if whole && !n.open[to.namespace] {
			c.on(route, to.at, ruleWrongPort, to.namespace+"/"+to.name, "%s leads to the Service %s/%s, which does not exist: correct the name, or add it", route.ID(), to.namespace, to.name)
		}
		return
	}
	if to.port == nil {
		return
	}
	ports := manifests.List(service.Object, "spec", "ports")
	if manifests.Text(service.Object, "spec", "type") == "ExternalName" && len(ports) == 0 {
		return
	}
	var have []string
	for _, port := range ports {
		number, name := manifests.Value(port, "port"), manifests.Text(port, "name")
		if number == to.port || name != "" && name == to.port || hasUnknown(port) {
			return
		}
		text := ""
		if value, is := number.(int64); is {
			text = strconv.FormatInt(value, 10)
		}
		if name != "" {
			text += " (" + name + ")"
		}
		have = append(have, text)
	}
	c.on(route, to.at, ruleWrongPort, service.ID().String(), "%s leads to port %v of %s, which has %s: make them agree", route.ID(), to.port, service.ID(), orElse(strings.Join(have, ", "), "no ports"))
}
