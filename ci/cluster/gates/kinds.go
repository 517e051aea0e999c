package gates

import "k8s.io/apimachinery/pkg/runtime/schema"

// The kinds of Kubernetes itself that castle looks at.
var (
	nodes                     = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	services                  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces                = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	endpointSlices            = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	deployments               = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	daemonSets                = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	storageClasses            = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	csiDrivers                = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)
