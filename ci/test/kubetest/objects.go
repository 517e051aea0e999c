package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Client is an administrator's.
func (s *Server) Client() dynamic.Interface {
	s.t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{
		Host:            s.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.pki.ca.CrtPEM, CertData: s.pki.admin.CrtPEM, KeyData: s.pki.admin.KeyPEM},
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Put creates an object, or replaces the one of its name, and then its status: what a controller would write. The
// namespace is created where it is missing.
func (s *Server) Put(resource schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	s.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		s.t.Fatalf("%v in %s", err, manifest)
	}
	stored, err := s.put(resource, object)
	if err != nil {
		s.t.Fatalf("put %s %s: %v", resource.Resource, object.GetName(), err)
	}
	return stored
}

func (s *Server) put(resource schema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	namespace := object.GetNamespace()
	if namespace != "" {
		_, err := s.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	client := s.Client().Resource(resource).Namespace(namespace)
	status, hasStatus := object.Object["status"]
	stored, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Keep what others wrote into the metadata.
		var patch []byte
		if patch, err = json.Marshal(object.Object); err != nil {
			return nil, err
		}
		stored, err = client.Patch(ctx, object.GetName(), "application/merge-patch+json", patch, metav1.PatchOptions{})
	}
	if err != nil || !hasStatus {
		return stored, err
	}
	// All of it, whatever was written to the object meanwhile, as what is tested does.
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status", "value": status}})
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, object.GetName(), "application/json-patch+json", patch, metav1.PatchOptions{}, "status")
}

// Delete removes an object and waits until it is gone.
func (s *Server) Delete(resource schema.GroupVersionResource, namespace, name string) {
	s.t.Helper()
	client := s.Client().Resource(resource).Namespace(namespace)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := client.Delete(ctx, name, metav1.DeleteOptions{})
	for err == nil {
		time.Sleep(20 * time.Millisecond)
		_, err = client.Get(ctx, name, metav1.GetOptions{})
	}
	if !apierrors.IsNotFound(err) {
		s.t.Fatalf("delete %s %s: %v", resource.Resource, name, err)
	}
}

// The modules that hold the CRDs, at the versions that the layers and, for the last one, a GitOps repository install.
var modules = map[string]struct{ module, folder string }{
	"metallb":           {"go.universe.tf/metallb@v0.15.2", "config/crd/bases"},
	"external-secrets":  {"github.com/external-secrets/external-secrets@v0.20.4", "config/crds/bases"},
	"flux-source":       {"github.com/fluxcd/source-controller@v1.9.5", "config/crd/bases"},
	"flux-kustomize":    {"github.com/fluxcd/kustomize-controller@v1.9.5", "config/crd/bases"},
	"flux-helm":         {"github.com/fluxcd/helm-controller@v1.6.4", "config/crd/bases"},
	"flux-notification": {"github.com/fluxcd/notification-controller@v1.9.3", "config/crd/bases"},
	"cert-manager":      {"github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds"},
}

// InstallCRDs installs a project's CRDs whose file names hold one of the words, and waits until they are served. Projects
// are metallb, external-secrets, flux-source, flux-kustomize, flux-helm. Their modules come from the module proxy, once.
func (s *Server) InstallCRDs(project string, words ...string) {
	s.t.Helper()
	for _, file := range definitionFiles(s.t, project, words) {
		s.installCRD(file)
	}
}

// Definitions is the text of the CRDs that InstallCRDs would install.
func Definitions(t testing.TB, project string, words ...string) []byte {
	t.Helper()
	var all []byte
	for _, file := range definitionFiles(t, project, words) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), text...)
	}
	return all
}

// Module is the folder of a project's Go module, at the version that its CRDs are installed in.
func Module(t testing.TB, project string) string {
	t.Helper()
	source, known := modules[project]
	if !known {
		t.Fatalf("no module of %q: there are %s", project, strings.Join(slices.Sorted(maps.Keys(modules)), ", "))
	}
	folder, err := moduleFolder(source.module)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// definitionFiles are a project's CRDs whose file names hold one of the words.
func definitionFiles(t testing.TB, project string, words []string) []string {
	t.Helper()
	source := modules[project]
	files, err := filepath.Glob(filepath.Join(Module(t, project), source.folder, "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(filepath.Base(file), word) })
	})
	if len(files) == 0 {
		t.Fatalf("%s has no CRD named %s", source.module, strings.Join(words, " or "))
	}
	return files
}

func (s *Server) installCRD(file string) {
	s.t.Helper()
	data, err := os.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer data.Close()
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	decoder := yaml.NewYAMLOrJSONDecoder(data, 64<<10)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			s.t.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		delete(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "spec", "conversion") // its webhook is not there
		if _, err := s.put(resource, object); err != nil {
			s.t.Fatalf("%s: %v", file, err)
		}
		s.waitServed(object)
	}
}

// waitServed lists the kind until the API server knows it.
func (s *Server) waitServed(definition *unstructured.Unstructured) {
	s.t.Helper()
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var served []string
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok && version["served"] == true {
			served = append(served, fmt.Sprint(version["name"]))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, version := range served {
		resource := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		for {
			_, err := s.Client().Resource(resource).List(ctx, metav1.ListOptions{})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				s.t.Fatalf("%s is not served: %v", resource, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// moduleFolder asks the go command, which downloads the module where it is missing.
func moduleFolder(module string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = os.TempDir()
	output, err := command.Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &result); jsonErr != nil || result.Dir == "" {
		return "", fmt.Errorf("module %s: %s: %w", module, result.Error, errors.Join(err, jsonErr))
	}
	return result.Dir, nil
}
