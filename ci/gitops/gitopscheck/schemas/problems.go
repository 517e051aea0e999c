package schemas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"tazlab.net/castle/ci/base/strictyaml"
)

var english = message.NewPrinter(language.English)

// problems are the innermost causes of what does not fit into a schema.
func problems(schema *jsonschema.Schema, object map[string]any) []Problem {
	invalid, is := errors.AsType[*jsonschema.ValidationError](schema.Validate(object))
	if !is {
		return nil
	}
	all := causes(invalid)
	for i, problem := range all {
		if last := len(problem.Path) - 1; problem.Surplus {
			if near := strictyaml.DidYouMean(problem.Path[last], fieldsAt(schema, problem.Path[:last]), "\n"); !strings.HasPrefix(near, "\n") {
				all[i].Message += ": " + near
			}
		}
	}
	return all
}

// fieldsAt are the names of the fields that a schema has at the end of a path; none where that cannot be told.
func fieldsAt(schema *jsonschema.Schema, path []string) []string {
	for ; schema != nil; path = path[1:] {
		for schema.Ref != nil {
			schema = schema.Ref
		}
		if len(path) == 0 {
			return slices.Sorted(maps.Keys(schema.Properties))
		}
		next := schema.Properties[path[0]]
		if next == nil {
			next, _ = schema.AdditionalProperties.(*jsonschema.Schema)
		}
		if next == nil {
			next = schema.Items2020
		}
		schema = next
	}
	return nil
}

func causes(of *jsonschema.ValidationError) []Problem {
	at := slices.Clone(of.InstanceLocation)
	problem := func(path []string, format string, arguments ...any) Problem {
		return Problem{Path: path, Message: fmt.Sprintf(format, arguments...)}
	}
	switch found := of.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var all []Problem
		for _, name := range found.Properties {
			surplus := problem(append(slices.Clone(at), name), "there is no such field")
			surplus.Surplus = true
			all = append(all, surplus)
		}
		return all
	case *kind.Required:
		var all []Problem
		for _, name := range found.Missing {
			all = append(all, problem(append(slices.Clone(at), name), "is missing"))
		}
		return all
	case *kind.Type:
		return []Problem{problem(at, "is %s, and must be %s", article(found.Got), either(found.Want))}
	case *kind.AnyOf, *kind.OneOf:
		var missing []string
		for _, cause := range of.Causes {
			for _, inner := range causes(cause) {
				if inner.Message != "is missing" {
					return []Problem{problem(at, "fits none of the forms that it may have")}
				}
				missing = append(missing, inner.Path[len(inner.Path)-1])
			}
		}
		if len(missing) == 0 {
			return []Problem{problem(at, "fits several of the forms of which it must have one")}
		}
		slices.Sort(missing)
		return []Problem{problem(at, "needs one of %s", strings.Join(slices.Compact(missing), ", "))}
	case *kind.Not:
		return []Problem{problem(at, "has a form that is not allowed")}
	}
	if len(of.Causes) == 0 {
		return []Problem{problem(at, "%s", of.ErrorKind.LocalizedString(english))}
	}
	var all []Problem
	for _, cause := range of.Causes {
		all = append(all, causes(cause)...)
	}
	return all
}

// article puts one before the name of a JSON type.
func article(kind string) string {
	switch kind {
	case "null":
		return "null"
	case "array", "object", "integer":
		return "an " + kind
	}
	return "a " + kind
}

func either(kinds []string) string {
	var all []string
	for _, kind := range kinds {
		if kind != "null" {
			all = append(all, article(kind))
		}
	}
	return strings.Join(all, " or ")
}
