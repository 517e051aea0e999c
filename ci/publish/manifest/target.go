package manifest

import (
	"cmp"
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
	// digestInName says that the repository itself ends with a digest or the beginning of one.
	digestInName bool
	pins         []pin        // digests under keys of their own, each of which wins over a tag; that of digest is the first
	commented    []*yaml.Node // the keys and values that a change concerns, whose comments may be meant for Flux
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
	node *yaml.Node
	reading
}

// reading is what a node is taken for: an object by its kind, Helm values, or neither.
type reading struct{ object, values bool }

func findTargets(text *text, document *yaml.Node, number int) []*target {
	f := &finder{text: text, number: number, seen: map[visit]bool{}, known: map[identity]*target{}}
	for _, root := range document.Content {
		f.resource(root, scope{})
	}
	return f.targets
}

// resource reads a document, or an object within one (an item of a List, a resource of a ResourceSet), by its kind.
func (f *finder) resource(n *yaml.Node, s scope) {
	n = resolve(n)
	if !f.enter(n, reading{object: true}) {
		return
	}
	s.kind, s.name = lookupString(n, "kind"), lookupString(n, "metadata", "name")
	s.namespace = lookupString(n, "metadata", "namespace")

	if items := lookup(n, "items"); strings.HasSuffix(s.kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for i, item := range items.Content {
			f.resource(item, s.child("items").item(i, item))
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

func (f *finder) enter(n *yaml.Node, as reading) bool {
	v := visit{n, as}
	if f.seen[v] {
		return false
	}
	f.seen[v] = true
	return true
}

func (f *finder) walk(n *yaml.Node, s scope) {
	n = resolve(n)
	if !f.enter(n, reading{values: s.values}) {
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			f.below(item, s.item(i, item))
		}
	case yaml.MappingNode:
		if s.values {
			f.helmImage(n, s)
		}
		for _, p := range pairs(n) {
			if isContainerList(p.key) {
				f.containers(resolve(p.value), s.child(p.key))
			}
			f.below(p.value, s.child(p.key))
		}
	}
}

// below walks what a list or a mapping holds. Outside Helm values an object there has a meaning of its own: the resources
// of a ResourceSet, the templates of other operators.
func (f *finder) below(n *yaml.Node, s scope) {
	if !s.values && isObject(n) {
		f.resource(n, s)
		return
	}
	f.walk(n, s)
}

// isObject tells a whole Kubernetes object from a mere reference to one.
func isObject(n *yaml.Node) bool {
	return lookupString(n, "apiVersion") != "" && lookupString(n, "kind") != "" && lookup(n, "metadata") != nil
}

func isContainerList(key string) bool {
	return key == "containers" || key == "initContainers" || key == "ephemeralContainers"
}

func (f *finder) containers(list *yaml.Node, s scope) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range list.Content {
		if isString(lookup(item, "image")) {
			f.addWhole(resolve(item), "image", s.item(i, item).child("image"), lookupString(item, "name"))
		}
	}
}

// helmImage reads a mapping of Helm values. A string beside a key "tag" is only the repository: the chart joins them.
func (f *finder) helmImage(n *yaml.Node, s scope) {
	image, repository := lookup(n, "image"), lookup(n, "repository")
	if !isString(image) && !isString(repository) {
		return
	}
	i := splitImage{registry: lookupString(n, "registry"), tagKey: "tag", tag: lookup(n, "tag"), pins: pinsOf(n)}
	if isString(image) {
		i.name = cmp.Or(lookupString(n, "name"), s.key, "image")
		if i.repository = image.Value; i.tag != nil {
			f.addSplit(n, s, i)
		} else {
			f.addWhole(n, "image", s.child("image"), i.name, i.pins...)
		}
	}
	imageKey := strings.HasSuffix(strings.ToLower(s.key), "image")
	if isString(repository) && (i.tag != nil || len(i.pins) > 0 || imageKey) {
		i.repository, i.name = repository.Value, s.key
		if i.name == "image" && s.parent != "" {
			i.name = s.parent
		}
		f.addSplit(n, s, i)
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
		f.addSplit(resolve(item), s.item(i, item), splitImage{
			repository: cmp.Or(lookupString(item, "newName"), name), tagKey: "newTag", tag: lookup(item, "newTag"),
			pins: pinsOf(resolve(item)), name: name,
		})
	}
}

// addWhole adds an image that is one string, under key in a mapping.
func (f *finder) addWhole(entry *yaml.Node, key string, s scope, name string, pins ...pin) {
	image := lookup(entry, key)
	f.add(&target{
		Location: f.location(s, ParseReference(strings.TrimRight(image.Value, "\n"))), whole: image,
		pins: pins, commented: own(entry, key),
	}, name)
}

// splitImage is an image whose tag and digest have keys of their own.
type splitImage struct {
	registry, repository string
	tagKey               string
	tag                  *yaml.Node
	pins                 []pin
	name                 string
}

func (f *finder) addSplit(entry *yaml.Node, s scope, i splitImage) {
	t := &target{
		kustomize: i.tagKey == "newTag", tag: i.tag, entries: []*yaml.Node{entry}, pins: i.pins,
		commented: own(entry, i.tagKey),
	}
	for _, p := range i.pins {
		t.commented = append(t.commented, own(entry, p.key)...)
	}
	r := Reference{Repository: i.repository}
	if i.registry != "" && i.repository != "" {
		r.Repository = i.registry + "/" + i.repository
	}
	// Some write the digest into the tag, since the chart joins repository and tag: tag: 1.2@sha256:…
	r.Tag, r.Digest, _ = strings.Cut(strings.TrimRight(stringValue(i.tag), "\n"), "@")
	if len(i.pins) > 0 {
		t.digest = i.pins[0].value
		r.Digest = cmp.Or(i.pins[0].digest(), r.Digest)
	}
	// Others write its beginning or all of it into the repository: repository: x@sha256, tag: 0123…
	var inName string
	if r.Repository, inName, t.digestInName = strings.Cut(r.Repository, "@"); t.digestInName {
		if !strings.Contains(inName, ":") {
			inName, r.Tag = inName+":"+r.Tag, ""
		}
		r.Digest = inName
	}
	switch {
	case i.tag != nil:
		s = s.child(i.tagKey)
	case t.digest != nil:
		s = s.child(i.pins[0].key)
	}
	t.Location = f.location(s, r)
	f.add(t, i.name)
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
	t.Policy = policyOf(t.commented)
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
