package fluxtree

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// sources says which of Flux's sources is this repository.
type sources struct {
	files *manifests.Files
	url   string // of flux-system, empty where the repository does not say
	urls  map[string][]string
}

// bootstrapped is the source that `flux bootstrap` and the Flux Operator make of the repository itself.
const bootstrapped = "flux-system"

func sourcesIn(files *manifests.Files) *sources {
	s := &sources{files: files, urls: map[string][]string{}}
	for _, kind := range []string{"GitRepository", "OCIRepository"} {
		for _, document := range files.Of(SourceGroup, kind) {
			if url := manifests.Text(document.Object, "spec", "url"); url != "" {
				s.urls[document.Name] = append(s.urls[document.Name], plainURL(url))
			}
		}
	}
	if urls := s.urls[bootstrapped]; len(urls) > 0 {
		s.url = urls[0]
	}
	return s
}

var userOrScheme = regexp.MustCompile(`^([a-z+]+://)?([^@/]*@)?`)

// plainURL is an address without what may differ between two ways to the same repository.
func plainURL(url string) string {
	url = userOrScheme.ReplaceAllString(strings.ToLower(url), "")
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"), ":", "/")
}

// folder is what a Kustomization builds of this repository, and whether it does. Where that is not said, it does if the
// folder is here.
func (s *sources) folder(kustomization map[string]any) (string, bool) {
	written := manifests.Text(kustomization, "spec", "path")
	folder := path.Clean("./" + strings.TrimPrefix(written, "/"))
	name := manifests.Text(kustomization, "spec", "sourceRef", "name")
	urls := s.urls[name]
	switch {
	case manifests.Text(kustomization, "spec", "sourceRef", "kind") == "ExternalArtifact":
		return s.copied(name, folder)
	case name == bootstrapped || name == "": // an empty one is missing, which is told otherwise
		return folder, true
	case s.url != "" && len(urls) > 0:
		return folder, slices.Contains(urls, s.url)
	}
	return folder, folder != "." && s.files.IsFolder(folder)
}

// copied is where an artifact that an ArtifactGenerator of Flux puts together has a folder from: out of the entries
// that copy "@alias/FOLDER/**" to "@artifact/FOLDER/", the one that says most about it.
//
// https://github.com/fluxcd/source-watcher/blob/main/docs/spec/v1beta1/artifactgenerators.md
func (s *sources) copied(artifact, folder string) (string, bool) {
	found, length := "", -1
	for _, generator := range s.files.Of("source.extensions.fluxcd.io", "ArtifactGenerator") {
		aliases := map[string]bool{}
		for _, source := range manifests.List(generator.Object, "spec", "sources") {
			name := manifests.Text(source, "name")
			aliases["@"+manifests.Text(source, "alias")] = name == bootstrapped || s.url != "" && slices.Contains(s.urls[name], s.url)
		}
		for _, made := range manifests.List(generator.Object, "spec", "artifacts") {
			if manifests.Text(made, "name") != artifact {
				continue
			}
			for _, entry := range manifests.List(made, "copy") {
				alias, from, _ := strings.Cut(manifests.Text(entry, "from"), "/")
				_, to, _ := strings.Cut(manifests.Text(entry, "to"), "/")
				from, whole := strings.CutSuffix(from, "**")
				from, to = path.Clean("./"+from), path.Clean("./"+to)
				if !whole || !aliases[alias] || !inside(folder, to) || len(to) <= length {
					continue
				}
				rest := strings.TrimPrefix(strings.TrimPrefix(folder, to), "/")
				if to == "." {
					rest = folder
				}
				if candidate := path.Join(from, rest); s.files.IsFolder(candidate) {
					found, length = candidate, len(to)
				}
			}
		}
	}
	return found, found != ""
}
