package fluxtree

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// candidate is a Kustomization as it stands in a file, which may be where a cluster begins.
type candidate struct {
	document *manifests.Document
	folder   string // that it builds
	self     bool   // it is in that folder itself, as `flux bootstrap` writes it
	within   int    // how many other Kustomizations build a folder that it is in
}

// candidates are all Kustomizations in files, in the order in which to look at them: what is in nobody's folder comes first,
// and of that what is in its own.
func (t *tree) candidates(listing *listing) []candidate {
	var all []candidate
	for _, document := range t.files.Of(KustomizeGroup, "Kustomization") {
		if document.Object == nil || listing.patches[document.File.Name] || document.Name == "" || manifests.Map(document.Object, "spec") == nil {
			continue
		}
		folder, own := t.sources.folder(document.Object)
		if !own {
			folder = ""
		}
		all = append(all, candidate{document: document, folder: folder, self: folder != "" && inside(document.File.Name, folder)})
	}
	for i := range all {
		for j, other := range all {
			if i != j && other.folder != "" && inside(all[i].document.File.Name, other.folder) && other.document.File != all[i].document.File {
				all[i].within++
			}
		}
	}
	rank := func(c candidate) int {
		if c.self {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(min(a.within, 1), min(b.within, 1)),
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.within, b.within),
			cmp.Compare(strings.Count(a.document.File.Name, "/"), strings.Count(b.document.File.Name, "/")),
			cmp.Compare(a.document.File.Name, b.document.File.Name),
			cmp.Compare(a.document.Line, b.document.Line),
		)
	})
	return all
}

// underBuilt says that a candidate lies in a folder that was built, or should have been, and did not come out of it: it is switched off there,
// or what is wrong with the folder is known already.
func (t *tree) underBuilt(c candidate) bool {
	for _, folders := range []map[string]bool{t.built, t.failed} {
		for folder := range folders {
			if inside(c.document.File.Name, folder) {
				return true
			}
		}
	}
	return false
}

// clustersOf puts the roots of each cluster together.
func clustersOf(roots []root) []*Cluster {
	byName := map[string][]root{}
	var rest []root
	for _, root := range roots {
		if name := clusterFolder(root.at); name != "" {
			byName[name] = append(byName[name], root)
		} else {
			rest = append(rest, root)
		}
	}
	// A single folder below clusters, and all that is elsewhere, is one cluster.
	if len(byName) == 1 && len(rest) > 0 {
		for name, roots := range byName {
			if all := slices.Concat(roots, rest); !clash(all) {
				byName[name], rest = all, nil
			}
		}
	}
	split(byName, rest, 0)
	var all []*Cluster
	for name, roots := range byName {
		cluster := &Cluster{Name: name}
		for _, root := range roots {
			for _, kustomization := range root.kustomizations {
				if !slices.ContainsFunc(cluster.Kustomizations, func(k *Kustomization) bool {
					return k.Document != nil && k.Document == kustomization.Document && k.ID() == kustomization.ID()
				}) {
					cluster.Kustomizations = append(cluster.Kustomizations, kustomization)
				}
			}
		}
		all = append(all, cluster)
	}
	slices.SortFunc(all, func(a, b *Cluster) int { return cmp.Compare(a.Name, b.Name) })
	if len(all) == 1 {
		all[0].Name = ""
	}
	return all
}

// split takes roots whose Kustomizations have the same names apart, by the first folder in which they differ.
func split(byName map[string][]root, roots []root, depth int) {
	if len(roots) == 0 {
		return
	}
	if !clash(roots) || depth > 10 {
		name := folderTo(roots[0].at, depth)
		byName[name] = append(byName[name], roots...)
		return
	}
	parts := map[string][]root{}
	for _, root := range roots {
		part := folderTo(root.at, depth+1)
		parts[part] = append(parts[part], root)
	}
	for _, part := range parts {
		split(byName, part, depth+1)
	}
}

// clash says that two roots have Kustomizations of the same name.
func clash(roots []root) bool {
	seen := map[manifests.ID]string{}
	for _, root := range roots {
		for _, kustomization := range root.kustomizations {
			at, is := seen[kustomization.ID()]
			if is && at != root.at {
				return true
			}
			seen[kustomization.ID()] = root.at
		}
	}
	return false
}

// clusterFolder is the folder below one that is called clusters.
func clusterFolder(at string) string {
	steps := strings.Split(at, "/")
	for i, step := range steps[:len(steps)-1] {
		if step == "clusters" && (i+2 < len(steps) || path.Ext(steps[i+1]) == "") {
			return strings.Join(steps[:i+2], "/")
		}
	}
	return ""
}

func folderTo(at string, depth int) string {
	steps := strings.Split(at, "/")
	return strings.Join(steps[:min(depth, len(steps))], "/")
}
