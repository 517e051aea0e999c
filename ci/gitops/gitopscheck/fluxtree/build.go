package fluxtree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// builder builds folders of a repository as kustomize-controller does, with its own packages: a kustomization.yaml is made where
// there is none, files are read from the whole repository and from nowhere else, and no plugin runs. What is written in memory only.
type builder struct {
	files *manifests.Files
}

// built is what came of a folder.
type built struct {
	resources []*resource.Resource
	read      map[string]bool // the files that were read, by their names in the repository
	remote    []string        // bases at other hosts, which were left out
}

// bare is a Kustomization that asks for nothing, for folders that kustomize alone builds.
var bare = unstructured.Unstructured{Object: map[string]any{}}

const origins = "originAnnotations"

// build builds a folder of the repository, named with slashes; "." is the repository itself.
func (b *builder) build(folder string, by unstructured.Unstructured) (built, error) {
	at := filepath.Join(b.files.Root, filepath.FromSlash(folder))
	disk, err := securefs.MakeFsOnDiskSecure(b.files.Root)
	if err != nil {
		return built{}, err
	}
	manifest, name, _, err := kustomize.NewGenerator(b.files.Root, by).GenerateManifest(at)
	if err != nil {
		return built{}, b.readable(err)
	}
	if manifest, err = withOrigins(manifest); err != nil {
		return built{}, err
	}
	local := &localFS{FileSystem: disk, root: b.files.Root, made: name, manifest: manifest, read: map[string]bool{}}
	resources, err := local.run(at)
	made := built{read: local.read, remote: local.remote}
	if err != nil {
		return made, b.readable(err)
	}
	made.resources = resources.Resources()
	return made, nil
}

// withOrigins is a kustomization.yaml that has kustomize note where each object comes from.
func withOrigins(manifest []byte) ([]byte, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(manifest, &fields); err != nil {
		return nil, err
	}
	kept, _ := fields["buildMetadata"].([]any)
	if !slices.Contains(kept, any(origins)) {
		fields["buildMetadata"] = append(kept, origins)
	}
	return yaml.Marshal(fields)
}

// readable is an error without the folder of this machine that the repository is in.
func (b *builder) readable(err error) error {
	text := strings.ReplaceAll(err.Error(), b.files.Root+"/", "")
	return errors.New(strings.ReplaceAll(text, "'"+b.files.Root+"'", "the repository"))
}

// objects are the resources with their origins, after the substitution of variables.
func (b *builder) objects(ctx context.Context, folder string, made built, by unstructured.Unstructured, vars variables) ([]*manifests.Object, error) {
	var all []*manifests.Object
	for _, built := range made.resources {
		origin, err := built.GetOrigin()
		if err != nil {
			return nil, err
		}
		if err := built.SetOrigin(nil); err != nil {
			return nil, err
		}
		name := built.GetKind() + " " + built.GetName()
		if by.Object != nil && vars.wanted {
			if err := vars.substitute(ctx, by, built); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		data, err := built.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object := &manifests.Object{}
		if err := utiljson.Unmarshal(data, &object.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if origin != nil {
			object.Document, object.File = b.origin(folder, origin, built)
		}
		if object.File == "" {
			object.File = folder
		}
		all = append(all, object)
	}
	return all, nil
}

// origin is the document that a resource was made from, or else the file that says to make it.
func (b *builder) origin(folder string, origin *resource.Origin, of *resource.Resource) (*manifests.Document, string) {
	switch {
	case origin.Repo != "":
		return nil, ""
	case origin.Path != "":
		file := path.Join(folder, origin.Path)
		return b.files.Find(file, of.GetKind(), of.GetName()), file
	}
	return nil, path.Join(folder, origin.ConfiguredIn)
}

// substituted is a copy of a Kustomization that has these variables and no others.
func substituted(by unstructured.Unstructured, vars map[string]string) unstructured.Unstructured {
	fields := make(map[string]any, len(vars))
	for name, value := range vars {
		fields[name] = value
	}
	copied := maps.Clone(by.Object)
	spec := maps.Clone(manifests.Map(copied, "spec"))
	spec["postBuild"] = map[string]any{"substitute": fields}
	copied["spec"] = spec
	return unstructured.Unstructured{Object: copied}
}
