// Package manifest finds image references in GitOps manifests and changes one of them in place, byte for byte; it never
// reads or writes a file, never formats YAML and never touches anything but the reference that was addressed.
//
// A manifest is a YAML stream of one or more documents. An image reference is known by where it stands:
//
//   - image of an item of a containers, initContainers or ephemeralContainers list, at any depth of any kind;
//   - an entry of a kustomize images list: at the top of a Kustomization, a Component or a document without a kind, in
//     spec.images of a Flux Kustomization, in spec.postRenderers[].kustomize.images of a HelmRelease;
//   - under spec.values of a HelmRelease, or anywhere in a document without a kind (a Helm values file): a mapping with
//     repository and tag or digest, optionally registry, or image as one string, with or without a tag beside it.
//
// Objects within objects (items of a List, spec.resources of a ResourceSet) are read by their own kind. A digest under a key
// of its own, whatever the chart calls it, wins over the tag beside it, and is never left behind.
//
// YAML that is the text of a string (a ConfigMap's data, an inline patch) is not looked into.
//
// A library parses the YAML and says where a scalar begins; the edit replaces bytes there and nowhere else. The result is
// parsed again and compared with the tree that was asked for before it is handed out.
package manifest
