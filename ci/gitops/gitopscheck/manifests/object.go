package manifests

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is an object as it is applied.
type Object struct {
	unstructured.Unstructured
	// Document is what it was made from. Nil: it was generated, or its origin is unknown.
	Document *Document
	// File is what says most about its origin, where there is no document: the kustomization.yaml that has it made.
	File string
}

// ID names an object within a cluster. Versions of a kind are the same object.
type ID struct{ Group, Kind, Namespace, Name string }

// ID is the object's.
func (o *Object) ID() ID {
	return ID{GroupOf(o.GetAPIVersion()), o.GetKind(), o.GetNamespace(), o.GetName()}
}

// Is says whether it is of a kind in a group.
func (o *Object) Is(group, kind string) bool {
	return o.GetKind() == kind && GroupOf(o.GetAPIVersion()) == group
}

// String is the object for a person: Deployment apps/web.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}

// At is where a field of the object stands, or the object itself.
func (o *Object) At(path ...string) (file string, line int) {
	if o.Document == nil {
		return o.File, 1
	}
	return o.Document.File.Name, o.Document.LineOf(path...)
}

// Value is what stands at a path of fields, and indexes of lists; nil where there is nothing.
func Value(in any, path ...string) any {
	for _, step := range path {
		switch inner := in.(type) {
		case map[string]any:
			in = inner[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(inner) {
				return nil
			}
			in = inner[i]
		default:
			return nil
		}
	}
	return in
}

// Text is the text at a path, empty where there is none.
func Text(in any, path ...string) string {
	text, _ := Value(in, path...).(string)
	return text
}

// List is the list at a path.
func List(in any, path ...string) []any {
	list, _ := Value(in, path...).([]any)
	return list
}

// Map is what is at a path with fields.
func Map(in any, path ...string) map[string]any {
	fields, _ := Value(in, path...).(map[string]any)
	return fields
}

// UnknownValue stands for the value of a variable that only the cluster knows. It can be a name in Kubernetes, so that nothing else
// goes wrong because of it.
const UnknownValue = "castle-unknown-value"

// HasUnknown says that part of a text is known to the cluster only, or is encrypted.
func HasUnknown(text string) bool {
	return strings.Contains(text, UnknownValue) || strings.HasPrefix(text, "ENC[")
}

// IsEncrypted says that SOPS has encrypted the object, in whole or in part.
func IsEncrypted(object map[string]any) bool { return Map(object, "sops") != nil }
