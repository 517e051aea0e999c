package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

var english = message.NewPrinter(language.English)

// problemsOf are the innermost causes of what a validation returned.
func problemsOf(err error) []Problem {
	invalid, is := errors.AsType[*jsonschema.ValidationError](err)
	if !is {
		return nil
	}
	return causes(invalid)
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
