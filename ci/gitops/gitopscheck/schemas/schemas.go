// Package schemas checks Kubernetes objects against the schemas of their kinds: those of Kubernetes itself and of the
// definitions that castle carries, and those of any other CustomResourceDefinition that it is given.
//
// An object may only have the fields that its schema has, as the API server holds it with server-side apply, which is what Flux uses. What an
// API server adds by itself is not asked for, and rules in CEL are not evaluated. Nothing is downloaded: a file with all schemas is compiled in.
package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// Verdict says how far an object could be checked.
type Verdict int

const (
	// Unknown: there is no schema of this kind.
	Unknown Verdict = iota
	// Unserved: the kind's group is known, and this version and kind of it do not exist, or no more.
	Unserved
	// Checked: there is a schema.
	Checked
)

// Result is what came of one object.
type Result struct {
	Verdict Verdict
	// Source is where the schema comes from: a file of the repository, or a project with its release.
	Source string
	// Exact says that the cluster has this very schema. Otherwise it is the one of a release that the cluster may not have.
	Exact    bool
	Problems []Problem
}

// Problem is one thing in an object that its schema does not allow.
type Problem struct {
	Path    []string // fields and indexes that lead to it
	Message string
	// Surplus says that the field must not be there, whatever its value.
	Surplus bool
}

// gvk is a group, version and kind, as in apps/v1/Deployment.
type gvk struct{ group, version, name string }

// Set are the schemas that are known.
type Set struct {
	kubernetes  *kubernetes
	definitions map[gvk]*definition
	groups      map[string]string // groups whose kinds are all known, with who serves them
	namespaced  map[gvk]bool      // without version
}

// Carried are the schemas that castle has in itself.
func Carried() (*Set, error) {
	archive, err := readArchive()
	if err != nil {
		return nil, err
	}
	set := &Set{kubernetes: newKubernetes(archive.Kubernetes), definitions: map[gvk]*definition{}, groups: map[string]string{}, namespaced: map[gvk]bool{}}
	for at := range set.kubernetes.names {
		set.groups[at.group] = "Kubernetes " + archive.Kubernetes.Version
		set.namespaced[gvk{at.group, "", at.name}] = !slices.Contains(archive.Kubernetes.ClusterScoped, at.group+"/"+at.name)
	}
	set.groups["extensions"] = "Kubernetes " + archive.Kubernetes.Version // its last kind went with 1.22
	for _, source := range archive.Sources {
		for _, crd := range source.Definitions {
			set.add(crd, source.Project+" "+source.Version, source.Exact)
		}
		for _, group := range source.Whole {
			set.groups[group] = source.Project + " " + source.Version
		}
	}
	return set, nil
}

// Add takes a CustomResourceDefinition, which goes before what castle carries. Anything that is none is left out.
func (s *Set) Add(object map[string]any, from string) {
	if crd, is := readDefinition(object); is {
		s.add(crd, from, true)
	}
}

func (s *Set) add(crd CRD, from string, exact bool) {
	for _, version := range crd.Versions {
		s.definitions[gvk{crd.Group, version.Name, crd.Kind}] = &definition{schema: version.Schema, source: from, exact: exact}
	}
	s.namespaced[gvk{crd.Group, "", crd.Kind}] = crd.Namespaced
	if exact {
		delete(s.groups, crd.Group) // who serves it and what is decided by what was given
	}
}

// Namespaced says whether objects of a kind are in namespaces, and whether that is known.
func (s *Set) Namespaced(group, name string) (namespaced, known bool) {
	namespaced, known = s.namespaced[gvk{group, "", name}]
	return namespaced, known
}

// Builtin says that Kubernetes itself serves the group.
func (s *Set) Builtin(group string) bool { return strings.HasPrefix(s.groups[group], "Kubernetes ") }

// Check holds an object against the schema of its kind. The object is not changed. Its error is a schema that cannot be used.
func (s *Set) Check(object map[string]any) (Result, error) {
	apiVersion, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	at := gvk{group, version, name}
	if definition, is := s.definitions[at]; is {
		problems, err := definition.check(object)
		if err != nil {
			return Result{}, fmt.Errorf("the schema of %s in %s: %w", name, definition.source, err)
		}
		return Result{Verdict: Checked, Source: definition.source, Exact: definition.exact, Problems: sorted(problems)}, nil
	}
	by, whole := s.groups[group]
	if reference, is := s.kubernetes.names[at]; is {
		problems, err := s.kubernetes.check(reference, object)
		return Result{Verdict: Checked, Source: by, Exact: true, Problems: sorted(problems)}, err
	}
	if whole {
		return Result{Verdict: Unserved, Source: by}, nil
	}
	return Result{Verdict: Unknown}, nil
}

func sorted(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(slices.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return problems
}

// AddAll takes all CustomResourceDefinitions in files, also those in a list, as `kubectl get crds -o yaml` writes one.
func (s *Set) AddAll(files *manifests.Files, from string) {
	for _, document := range files.Of("apiextensions.k8s.io", "CustomResourceDefinition") {
		s.Add(document.Object, from)
	}
	for _, list := range files.Of("", "List") {
		for _, item := range manifests.List(list.Object, "items") {
			if object, is := item.(map[string]any); is {
				s.Add(object, from)
			}
		}
	}
}
