package fluxtree

import (
	"maps"
	"path"
	"slices"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// listing is which kustomization.yaml names which file or folder.
type listing struct {
	files     map[string]string   // the kustomization.yaml of each folder that has one
	component map[string]bool     // folders whose kustomization.yaml is a component's
	by        map[string][]string // folders that name a file or folder
	patches   map[string]bool     // files that are patches
}

func listingOf(files *manifests.Files) *listing {
	l := &listing{files: map[string]string{}, component: map[string]bool{}, by: map[string][]string{}, patches: map[string]bool{}}
	for _, file := range files.Sorted() {
		if !IsKustomizationFile(file.Name) || len(file.Documents) == 0 {
			continue
		}
		folder, fields := path.Dir(file.Name), file.Documents[0].Object
		l.files[folder] = file.Name
		l.component[folder] = file.Documents[0].Kind == "Component"
		for _, list := range []string{"resources", "bases", "components"} {
			for _, entry := range manifests.List(fields, list) {
				if text, is := entry.(string); is && !isRemote(text) {
					named := path.Join(folder, text)
					l.by[named] = append(l.by[named], folder)
				}
			}
		}
		for _, list := range []string{"patches", "patchesJson6902"} {
			for _, entry := range manifests.List(fields, list) {
				l.patches[path.Join(folder, manifests.Text(entry, "path"))] = true
			}
		}
		for _, entry := range manifests.List(fields, "patchesStrategicMerge") {
			if text, is := entry.(string); is {
				l.patches[path.Join(folder, text)] = true
			}
		}
	}
	return l
}

// file is the kustomization.yaml of a folder.
func (l *listing) file(folder string) string { return l.files[folder] }

// all are the folders that can be built by themselves and that no other names, sorted.
func (l *listing) all() []string {
	var all []string
	for _, folder := range slices.Sorted(maps.Keys(l.files)) {
		if !l.component[folder] && len(l.by[folder]) == 0 {
			all = append(all, folder)
		}
	}
	return all
}

// tops are the outermost folders whose kustomization.yaml takes a file in.
func (l *listing) tops(name string) []string {
	found := map[string]bool{}
	seen := map[string]bool{}
	var climb func(string)
	climb = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if len(l.by[name]) == 0 && l.files[name] != "" && !l.component[name] {
			found[name] = true
		}
		for _, folder := range l.by[name] {
			climb(folder)
		}
	}
	climb(name)
	return slices.Sorted(maps.Keys(found))
}

// off says that the nearest kustomization.yaml, in the folder of a file or above it, leaves the file out.
func (l *listing) off(name string) bool {
	if len(l.tops(name)) > 0 {
		return false
	}
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if l.files[folder] != "" {
			return true
		}
		if folder == "." || folder == "/" {
			return false
		}
	}
}
