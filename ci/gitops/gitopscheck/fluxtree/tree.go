// Package fluxtree finds out what a repository has Flux apply to which cluster. It begins with the Kustomizations that nothing else in the
// repository applies, builds each as kustomize-controller does, and goes on with the Kustomizations that come out of it, as
// their parents have patched them.
//
// A repository can serve several clusters, in which objects have the same names. Kustomizations in different folders below one
// that is called clusters belong to different clusters; so do those of the same name, by the first folder in which they differ.
package fluxtree

import (
	"context"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// The groups of Flux's own kinds.
const (
	KustomizeGroup = "kustomize.toolkit.fluxcd.io"
	HelmGroup      = "helm.toolkit.fluxcd.io"
	SourceGroup    = "source.toolkit.fluxcd.io"
)

// Repository is what there is to check.
type Repository struct {
	Files    *manifests.Files
	Clusters []*Cluster
	// Overlays are the folders with a kustomization.yaml that no Kustomization builds.
	Overlays []*Overlay
	// Unused are Kustomizations in files that nothing applies, whose folder and source are not here either.
	Unused []*manifests.Document
	// Applied are the documents that Flux applies in some cluster. Another one may have been applied by hand.
	Applied map[*manifests.Document]bool
}

// Cluster is what is applied to one.
type Cluster struct {
	Name           string // the folder that sets it apart, empty for the only one
	Kustomizations []*Kustomization
}

// Objects are those of all Kustomizations that are not suspended.
func (c *Cluster) Objects() []*manifests.Object {
	var all []*manifests.Object
	for _, kustomization := range c.Kustomizations {
		if !kustomization.Suspended() {
			all = append(all, kustomization.Objects...)
		}
	}
	return all
}

// Kustomization is one of Flux's, with what it applies.
type Kustomization struct {
	*manifests.Object
	Folder  string // that it builds; empty where it is not in this repository
	Built   bool
	Err     error // why it could not be built
	Objects []*manifests.Object
	// Remote are bases at other hosts, whose objects are not among these.
	Remote []string
	// Empty are variables without a value, which Flux replaces by nothing.
	Empty []string
}

// Suspended says that Flux leaves it alone.
func (k *Kustomization) Suspended() bool {
	return manifests.Value(k.Object.Object, "spec", "suspend") == true
}

// Overlay is a folder with a kustomization.yaml.
type Overlay struct {
	File    string // its kustomization.yaml
	Folder  string
	Objects []*manifests.Object
	Err     error
	Remote  []string
}

// tree is the work on one repository, and then on one root after the other.
type tree struct {
	builder
	sources *sources
	read    map[string]bool                 // all files that kustomize has read
	applied map[*manifests.Document]bool    // what objects were made from
	built   map[string]bool                 // folders that a Kustomization has built without error
	failed  map[string]bool                 // folders that could not be built
	objects []*manifests.Object             // of the root at work
	own     map[manifests.ID]*Kustomization // of the root at work
}

// root is where a cluster begins: a Kustomization as it stands in a file, or an overlay out of which Kustomizations come.
type root struct {
	at             string // its file or folder
	kustomizations []*Kustomization
}

// Read reads a repository. What below names is the folder of the Kustomizations to begin with; empty: all.
func Read(ctx context.Context, files *manifests.Files, below string) (*Repository, error) {
	t := &tree{builder: builder{files}, sources: sourcesIn(files), read: map[string]bool{}, applied: map[*manifests.Document]bool{}, built: map[string]bool{}, failed: map[string]bool{}}
	listing := listingOf(files)
	repository := &Repository{Files: files}
	var roots []root
	begin := func(at string, objects []*manifests.Object) {
		t.objects, t.own = nil, map[manifests.ID]*Kustomization{}
		if found := t.follow(ctx, objects, at); len(found) > 0 {
			roots = append(roots, root{at, found})
		}
	}
	var doubtful []beginning
	for _, candidate := range t.candidates(listing) {
		if below != "" && !inside(candidate.document.File.Name, below) || t.applied[candidate.document] || t.underBuilt(candidate) ||
			!candidate.self && listing.off(candidate.document.File.Name) {
			continue
		}
		for _, from := range t.beginnings(ctx, candidate, listing) {
			if clusterFolder(from.at) == "" && !t.buildsSomething(from.objects) {
				doubtful = append(doubtful, from)
				continue
			}
			begin(from.at, from.objects)
		}
	}
	// What builds nothing of this repository, and is beside nothing that does, lies in some archive, unless it comes out of what could not be built.
	for _, from := range doubtful {
		beside := func(r root) bool { return path.Dir(r.at) == path.Dir(from.at) }
		switch {
		case len(roots) == 0 || slices.ContainsFunc(roots, beside):
			begin(from.at, from.objects)
		case len(t.failed) == 0:
			repository.Unused = append(repository.Unused, from.of)
		}
	}
	repository.Clusters, repository.Applied = clustersOf(roots), t.applied
	for _, folder := range listing.all() {
		if (below == "" || inside(folder, below)) && !t.read[listing.file(folder)] {
			objects, remote, err := t.overlay(ctx, folder)
			repository.Overlays = append(repository.Overlays, &Overlay{File: listing.file(folder), Folder: folder, Objects: objects, Err: err, Remote: remote})
		}
	}
	return repository, ctx.Err()
}

// follow builds the Kustomizations among the objects, and those among what they apply, and so on.
func (t *tree) follow(ctx context.Context, objects []*manifests.Object, at string) []*Kustomization {
	var all []*Kustomization
	for len(objects) > 0 && ctx.Err() == nil {
		object := objects[0]
		objects = objects[1:]
		if !object.Is(KustomizeGroup, "Kustomization") {
			continue
		}
		if t.own[object.ID()] != nil {
			continue
		}
		kustomization := t.kustomization(ctx, object, at)
		t.own[object.ID()] = kustomization
		t.objects = append(t.objects, kustomization.Objects...)
		objects = append(objects, kustomization.Objects...)
		all = append(all, kustomization)
	}
	return all
}

// kustomization builds one.
func (t *tree) kustomization(ctx context.Context, object *manifests.Object, at string) *Kustomization {
	made := &Kustomization{Object: object}
	folder, own := t.sources.folder(object.Object)
	if !own {
		return made
	}
	made.Folder = folder
	if strings.HasPrefix(folder, "../") || folder == ".." || !t.files.IsFolder(folder) {
		return made
	}
	vars := t.variablesOf(object, at)
	result, err := t.build(folder, object.Unstructured)
	made.Remote = result.remote
	t.take(result)
	if err == nil {
		made.Objects, err = t.builder.objects(ctx, folder, result, object.Unstructured, vars)
	}
	if err != nil {
		t.failed[folder] = true
		made.Err = err
		return made
	}
	made.Built, t.built[folder] = true, true
	for _, applied := range made.Objects {
		t.applied[applied.Document] = true
	}
	for name := range vars.empty {
		made.Empty = append(made.Empty, name)
	}
	slices.Sort(made.Empty)
	return made
}

// overlay builds a folder that no Kustomization builds.
func (t *tree) overlay(ctx context.Context, folder string) ([]*manifests.Object, []string, error) {
	result, err := t.build(folder, bare)
	t.take(result)
	if err != nil {
		return nil, result.remote, err
	}
	objects, err := t.builder.objects(ctx, folder, result, bare, variables{})
	for _, object := range objects {
		t.applied[object.Document] = true
	}
	return objects, result.remote, err
}

func (t *tree) take(result built) {
	for name := range result.read {
		t.read[name] = true
	}
}

// inside says whether a path is a folder or below it; everything is below ".".
func inside(name, folder string) bool {
	folder = path.Clean(folder)
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}
