package manifest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// target is one image reference with the nodes that spell it: either the whole reference in one scalar, or tag and digest
// under keys of their own.
type target struct {
	Location
	names  []string // what Selector.Container may say
	offset int      // of Line's scalar, in bytes

	whole *yaml.Node // the scalar that holds all of it, else nil

	kustomize   bool
	tag, digest *yaml.Node   // nil where the key is missing
	entries     []*yaml.Node // the mappings that hold them; several where they share both through aliases
}

// identity is what makes two uses one target: the same scalars, of the same image.
type identity struct {
	whole, tag, digest, entry *yaml.Node
	repository                string
}

func (t *target) identity() identity {
	id := identity{whole: t.whole, tag: t.tag, digest: t.digest, repository: canonical(t.Repository)}
	if t.whole == nil && t.tag == nil && t.digest == nil {
		id.entry = t.entries[0]
	}
	return id
}

// anchorNode is the node whose line stands for the target's.
func (t *target) anchorNode() *yaml.Node {
	for _, n := range []*yaml.Node{t.whole, t.tag, t.digest} {
		if n != nil {
			return n
		}
	}
	return t.entries[0]
}

// scope is where in the document the finder is.
type scope struct {
	kind, namespace, name string
	path                  string
	key, parent           string // the key this node stands under, and the one above it
	values                bool   // inside Helm values
}

func (s scope) child(key string) scope {
	s.parent, s.key = s.key, key
	if s.path != "" {
		s.path += "."
	}
	s.path += key
	return s
}

// item names a list item by its name, or by its index where it has none.
func (s scope) item(index int, n *yaml.Node) scope {
	name := lookupString(n, "name")
	if name == "" {
		name = fmt.Sprint(index)
	}
	s.path += "[" + name + "]"
	return s
}

type finder struct {
	text    *text
	number  int
	seen    map[visit]bool
	targets []*target
	known   map[identity]*target
}

// visit is a node in one reading of it; each is walked once, so that aliases cost nothing and circles end.
type visit struct {
	node   *yaml.Node
	values bool
}

func findTargets(text *text, document *yaml.Node, number int) []*target {
	f := &finder{text: text, number: number, seen: map[visit]bool{}, known: map[identity]*target{}}
	for _, root := range document.Content {
		f.resource(root, scope{})
	}
	return f.targets
}

// resource reads a document, or an item of a List, by its kind.
func (f *finder) resource(n *yaml.Node, s scope) {
	n = resolve(n)
	s.kind, s.name = lookupString(n, "kind"), lookupString(n, "metadata", "name")
	s.namespace = lookupString(n, "metadata", "namespace")

	if items := lookup(n, "items"); strings.HasSuffix(s.kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		if f.enter(n, false) {
			for i, item := range items.Content {
				f.resource(item, s.child("items").item(i, item))
			}
		}
		return
	}

	f.walk(n, s)
	switch s.kind {
	case "Kustomization", "Component":
		f.kustomizeImages(lookup(n, "images"), s.child("images"))
		f.kustomizeImages(lookup(n, "spec", "images"), s.child("spec").child("images"))
	case "HelmRelease":
		spec := s.child("spec")
		f.postRenderers(lookup(n, "spec", "postRenderers"), spec.child("postRenderers"))
		if values := lookup(n, "spec", "values"); values != nil {
			// The names of the keys begin anew: values.image is called "image", not "spec" or "values".
			f.walk(values, scope{s.kind, s.namespace, s.name, "spec.values", "", "", true}.under(s.path))
		}
	case "":
		f.kustomizeImages(lookup(n, "images"), s.child("images"))
		s.values = true
		f.walk(n, s)
	}
}

// under puts the path of a List item in front.
func (s scope) under(path string) scope {
	if path != "" {
		s.path = path + "." + s.path
	}
	return s
}

func (f *finder) enter(n *yaml.Node, values bool) bool {
	v := visit{n, values}
	if f.seen[v] {
		return false
	}
	f.seen[v] = true
	return true
}

func (f *finder) walk(n *yaml.Node, s scope) {
	n = resolve(n)
	if !f.enter(n, s.values) {
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			f.walk(item, s.item(i, item))
		}
	case yaml.MappingNode:
		if s.values {
			f.helmImage(n, s)
		}
		for _, p := range pairs(n) {
			if isContainerList(p.key) {
				f.containers(resolve(p.value), s.child(p.key))
			}
			f.walk(p.value, s.child(p.key))
		}
	}
}

func isContainerList(key string) bool {
	return key == "containers" || key == "initContainers" || key == "ephemeralContainers"
}

func (f *finder) containers(list *yaml.Node, s scope) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range list.Content {
		if image := lookup(item, "image"); isString(image) {
			f.addWhole(image, s.item(i, item).child("image"), lookupString(item, "name"))
		}
	}
}

// helmImage reads a mapping of Helm values. A string beside a key "tag" is only the repository: the chart joins them.
func (f *finder) helmImage(n *yaml.Node, s scope) {
	tag, digest := lookup(n, "tag"), lookup(n, "digest")
	registry := lookupString(n, "registry")

	if image := lookup(n, "image"); isString(image) {
		name := lookupString(n, "name")
		if name == "" {
			name = s.key
		}
		if name == "" {
			name = "image"
		}
		if tag == nil {
			f.addWhole(image, s.child("image"), name)
		} else {
			f.addSplit(n, s, splitImage{registry, image.Value, "tag", tag, digest, name})
		}
	}
	imageKey := strings.HasSuffix(strings.ToLower(s.key), "image")
	if repository := lookup(n, "repository"); isString(repository) && (tag != nil || digest != nil || imageKey) {
		name := s.key
		if name == "image" && s.parent != "" {
			name = s.parent
		}
		f.addSplit(n, s, splitImage{registry, repository.Value, "tag", tag, digest, name})
	}
}

func (f *finder) postRenderers(list *yaml.Node, s scope) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range list.Content {
		f.kustomizeImages(lookup(item, "kustomize", "images"), s.item(i, item).child("kustomize").child("images"))
	}
}

func (f *finder) kustomizeImages(list *yaml.Node, s scope) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range list.Content {
		name := lookupString(item, "name")
		repository := lookupString(item, "newName")
		if repository == "" {
			repository = name
		}
		f.addSplit(resolve(item), s.item(i, item),
			splitImage{"", repository, "newTag", lookup(item, "newTag"), lookup(item, "digest"), name})
	}
}

func (f *finder) addWhole(image *yaml.Node, s scope, name string) {
	f.add(&target{Location: f.location(s, ParseReference(strings.TrimRight(image.Value, "\n"))), whole: image}, name)
}

// splitImage is an image whose tag and digest have keys of their own.
type splitImage struct {
	registry, repository string
	tagKey               string
	tag, digest          *yaml.Node
	name                 string
}

func (f *finder) addSplit(entry *yaml.Node, s scope, i splitImage) {
	r := Reference{Repository: i.repository}
	if i.registry != "" && i.repository != "" {
		r.Repository = i.registry + "/" + i.repository
	}
	// Some write the digest into the tag, since the chart joins repository and tag: tag: 1.2@sha256:…
	r.Tag, r.Digest, _ = strings.Cut(strings.TrimRight(stringValue(i.tag), "\n"), "@")
	if d := strings.TrimRight(stringValue(i.digest), "\n"); d != "" {
		r.Digest = d
	}
	switch {
	case i.tag != nil:
		s = s.child(i.tagKey)
	case i.digest != nil:
		s = s.child("digest")
	}
	f.add(&target{Location: f.location(s, r), kustomize: i.tagKey == "newTag", tag: i.tag, digest: i.digest,
		entries: []*yaml.Node{entry}}, i.name)
}

func (f *finder) location(s scope, r Reference) Location {
	return Location{Document: f.number, Kind: s.kind, Namespace: s.namespace, Name: s.name, Path: s.path, Reference: r}
}

// add keeps a target once, however many aliases lead to it. What names no image is left out: an empty string, and a value
// that SOPS encrypted.
func (f *finder) add(t *target, name string) {
	if t.Repository == "" || strings.HasPrefix(t.Repository, "ENC[") {
		return
	}
	if known := f.known[t.identity()]; known != nil {
		known.addName(name)
		for _, e := range t.entries {
			if !slices.Contains(known.entries, e) {
				known.entries = append(known.entries, e)
			}
		}
		return
	}
	t.addName(name)
	t.offset = f.text.nodeOffset(t.anchorNode())
	t.Line = f.text.line(t.offset)
	f.known[t.identity()] = t
	f.targets = append(f.targets, t)
}

func (t *target) addName(name string) {
	if name == "" || slices.Contains(t.names, name) {
		return
	}
	if t.Container == "" {
		t.Container = name
	}
	t.names = append(t.names, name)
}
