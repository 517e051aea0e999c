package fluxtree

import (
	"context"
	"slices"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// beginning are objects with Kustomizations among them that a cluster may begin with.
type beginning struct {
	of      *manifests.Document // the Kustomization that led there
	at      string
	objects []*manifests.Object
}

// beginnings are a Kustomization as it stands in its file, or what the outermost folders make of it whose kustomization.yaml takes it in.
func (t *tree) beginnings(ctx context.Context, candidate candidate, listing *listing) []beginning {
	object := &manifests.Object{Document: candidate.document, File: candidate.document.File.Name}
	object.Object = candidate.document.Object
	tops := listing.tops(object.File)
	if candidate.self || len(tops) == 0 {
		t.applied[candidate.document] = true
		return []beginning{{candidate.document, object.File, []*manifests.Object{object}}}
	}
	var all []beginning
	for _, top := range tops {
		if objects, _, err := t.overlay(ctx, top); err == nil {
			all = append(all, beginning{candidate.document, top, objects})
		}
	}
	return all
}

// buildsSomething says that a Kustomization among the objects builds a folder that is here.
func (t *tree) buildsSomething(objects []*manifests.Object) bool {
	return slices.ContainsFunc(objects, func(object *manifests.Object) bool {
		folder, own := t.sources.folder(object.Object)
		return object.Is(KustomizeGroup, "Kustomization") && own && t.files.IsFolder(folder)
	})
}
