package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WaitFunc is a wait: it returns nil as soon as it has seen what it waits for, reports what it sees until then, and returns
// the context's error when that ends first, and any other error only where waiting longer cannot help.
type WaitFunc func(ctx context.Context, report func(lastSeen string)) error

// Wait calls f.
func (f WaitFunc) Wait(ctx context.Context, report func(lastSeen string)) error {
	return f(ctx, report)
}

// Test judges one object: what a person should know about it, and whether it is as wished.
type Test func(*unstructured.Unstructured) (seen string, ok bool)

// Object names one object; Namespace is empty for cluster-wide kinds.
type Object struct{ Namespace, Name string }

// ObjectOf names an object that was read.
func ObjectOf(object *unstructured.Unstructured) Object {
	return Object{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// ParseObject reads "namespace/name".
func ParseObject(text string) (Object, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Object{}, fmt.Errorf("%q names no object: want namespace/name, such as blog/hugo-blog", text)
	}
	return Object{namespace, name}, nil
}

// String is what ParseObject reads.
func (o Object) String() string { return o.Namespace + "/" + o.Name }

// Objects waits until each of the named objects exists and passes the test.
func (c *Client) Objects(resource schema.GroupVersionResource, namespace string, test Test, names ...string) WaitFunc {
	targets := make([]Target, len(names))
	for i, name := range names {
		targets[i] = Target{Resource: resource, Namespace: namespace, Name: name}
	}
	return func(ctx context.Context, report func(string)) error {
		return c.Follow(ctx, targets, func(view View) (string, bool, error) {
			seen, ok := each(names, view, test)
			return seen, ok, nil
		}, report)
	}
}

// each tests one object per name; view holds at most one of each.
func each(names []string, view View, test Test) (string, bool) {
	var passed int
	var open []string
	for i, name := range names {
		seen, ok := "does not exist yet", false
		if len(view[i]) > 0 {
			seen, ok = test(view[i][0])
		}
		if ok {
			passed++
			continue
		}
		open = append(open, name+": "+seen)
	}
	switch {
	case len(open) == 0 && len(names) == 1:
		seen, _ := test(view[0][0])
		return seen, true
	case len(names) == 1:
		return strings.TrimPrefix(open[0], names[0]+": "), false
	default:
		return Tally(passed, len(names), open), len(open) == 0
	}
}

// Tally says how many are ready, and what keeps the others.
func Tally(passed, all int, open []string) string {
	seen := fmt.Sprintf("%d of %d ready", passed, all)
	if len(open) > 0 {
		seen += "; " + strings.Join(open, "; ")
	}
	return seen
}
