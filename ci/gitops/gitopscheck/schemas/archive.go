package schemas

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// packed is Archive as JSON, without descriptions, compressed. `go test ./ci/gitops/gitopscheck/schemas -update` writes it
// anew from the Go modules that sources.yaml names.
//
//go:embed schemas.json.gz
var packed []byte

// Archive are the schemas that castle carries.
type Archive struct {
	Kubernetes KubernetesSchemas `json:"kubernetes"`
	Sources    []Source          `json:"sources"`
}

// KubernetesSchemas are those of the built-in kinds, out of Kubernetes' own OpenAPI document.
type KubernetesSchemas struct {
	Version string `json:"version"`
	// Definitions are those of OpenAPI 2.0, by their names, each as in the document.
	Definitions map[string]any `json:"definitions"`
	// ClusterScoped are the kinds that are in no namespace, as in rbac.authorization.k8s.io/ClusterRole.
	ClusterScoped []string `json:"clusterScoped"`
}

// Source is a project with the definitions of one of its releases.
type Source struct {
	Project string `json:"project"`
	Version string `json:"version"`
	// Exact says that what does not fit is an error, although a cluster may have another release.
	Exact bool `json:"exact,omitempty"`
	// Whole are the groups of which no kind is missing here.
	Whole       []string `json:"whole,omitempty"`
	Definitions []CRD    `json:"definitions"`
}

// CRD is what is needed of a CustomResourceDefinition.
type CRD struct {
	Group      string    `json:"group"`
	Kind       string    `json:"kind"`
	Namespaced bool      `json:"namespaced"`
	Versions   []Version `json:"versions"`
}

// Version is one that is served, with its OpenAPI v3 schema.
type Version struct {
	Name   string         `json:"name"`
	Schema map[string]any `json:"schema"`
}

// readArchive unpacks it, once.
var readArchive = sync.OnceValues(func() (Archive, error) {
	var archive Archive
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&archive)
	}
	if err != nil {
		return archive, fmt.Errorf("castle's own schemas cannot be read: %w", err)
	}
	return archive, nil
})

// readDefinition reads a CustomResourceDefinition of apiextensions.k8s.io/v1, the only version that is still served.
func readDefinition(object map[string]any) (CRD, bool) {
	if object["kind"] != "CustomResourceDefinition" || object["apiVersion"] != "apiextensions.k8s.io/v1" {
		return CRD{}, false
	}
	var written struct {
		Spec struct {
			Group    string
			Scope    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Served bool
				Schema struct {
					OpenAPIV3Schema map[string]any
				}
			}
		}
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &written)
	}
	if err != nil || written.Spec.Group == "" || written.Spec.Names.Kind == "" {
		return CRD{}, false
	}
	crd := CRD{Group: written.Spec.Group, Kind: written.Spec.Names.Kind, Namespaced: written.Spec.Scope == "Namespaced"}
	for _, version := range written.Spec.Versions {
		if version.Served && version.Schema.OpenAPIV3Schema != nil {
			crd.Versions = append(crd.Versions, Version{version.Name, version.Schema.OpenAPIV3Schema})
		}
	}
	return crd, true
}
