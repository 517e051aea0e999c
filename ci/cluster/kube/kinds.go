package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// The kinds of Kubernetes itself that castle looks at.
var (
	Pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Claims         = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	Volumes        = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	Nodes          = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Services       = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	Events         = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	Namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	EndpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	Deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	DaemonSets     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	StorageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	CSIDrivers     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	CRDs           = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)
