package main

import (
	"encoding/json"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
)

// resource is one that a plan makes.
type resource struct {
	*tfjson.StateResource
	unknown map[string]any // what is known after the apply only
}

type resources []resource

func resourcesOf(plan *tfjson.Plan) resources {
	unknown := map[string]map[string]any{}
	for _, change := range plan.ResourceChanges {
		unknown[change.Address], _ = change.Change.AfterUnknown.(map[string]any)
	}
	var list resources
	for _, one := range plan.PlannedValues.RootModule.Resources {
		list = append(list, resource{one, unknown[one.Address]})
	}
	return list
}

// each calls a check for all resources of a type, and finds it wrong that there is none.
func (r resources) each(typ string, check func(resource) []finding) []finding {
	var found []finding
	none := true
	for _, one := range r {
		if one.Type == typ {
			none = false
			for _, what := range check(one) {
				found = append(found, one.Address+" "+what)
			}
		}
	}
	if none {
		found = append(found, "there is no "+typ)
	}
	return found
}

func when(wrong bool, format string, args ...any) []finding {
	if !wrong {
		return nil
	}
	return []finding{fmt.Sprintf(format, args...)}
}

func number(value any) float64 {
	n, _ := value.(json.Number)
	if f, err := n.Float64(); err == nil {
		return f
	}
	f, _ := value.(float64)
	return f
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

func first(value any) map[string]any {
	if items := list(value); len(items) > 0 {
		block, _ := items[0].(map[string]any)
		return block
	}
	return nil
}
