package schemas

import (
	"maps"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// definition is the schema of one version of a custom resource, which is compiled when the first object needs it.
type definition struct {
	schema   map[string]any // OpenAPI v3, structural
	source   string
	exact    bool
	compiled *jsonschema.Schema
}

func (d *definition) check(object map[string]any) ([]Problem, error) {
	if d.compiled == nil {
		root := structural(d.schema)
		root["properties"] = withObjectFields(root["properties"])
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("definition.json", root); err != nil {
			return nil, err
		}
		var err error
		if d.compiled, err = compiler.Compile("definition.json"); err != nil {
			return nil, err
		}
	}
	bare := maps.Clone(object)
	delete(bare, "status")
	if metadata, has := bare["metadata"]; has {
		bare["metadata"] = withoutNulls(metadata)
	}
	return problems(d.compiled, bare), nil
}

// withObjectFields are properties with those that every object has.
func withObjectFields(properties any) map[string]any {
	all, _ := properties.(map[string]any)
	all = maps.Clone(all)
	if all == nil {
		all = map[string]any{}
	}
	all["apiVersion"], all["kind"] = map[string]any{"type": "string"}, map[string]any{"type": "string"}
	all["metadata"] = map[string]any{"type": "object"}
	return all
}

// structural is a structural schema of a CustomResourceDefinition as a JSON Schema that allows no other fields. What stands
// below allOf, anyOf, oneOf and not is no structure: it narrows values only, and is taken as it is.
//
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
func structural(schema map[string]any) map[string]any {
	made := narrowing(schema)
	properties, _ := schema["properties"].(map[string]any)
	inner := make(map[string]any, len(properties))
	for name, property := range properties {
		inner[name] = converted(property, structural)
	}
	if len(inner) > 0 {
		made["properties"] = inner
	}
	if required, _ := schema["required"].([]any); len(required) > 0 {
		// What has a default is filled in before the object is validated.
		made["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			property, _ := properties[name.(string)].(map[string]any)
			_, defaulted := property["default"]
			return defaulted
		})
	}
	if items, has := schema["items"]; has {
		made["items"] = converted(items, structural)
	}
	if more, has := schema["additionalProperties"]; has {
		made["additionalProperties"] = converted(more, structural)
	}
	if schema["x-kubernetes-embedded-resource"] == true {
		made["properties"] = withObjectFields(made["properties"])
	}
	_, decided := made["additionalProperties"]
	if len(inner) > 0 && !decided && schema["x-kubernetes-preserve-unknown-fields"] != true {
		made["additionalProperties"] = false
	}
	return made
}

// converted leaves alone what is no schema, such as additionalProperties: true.
func converted(value any, convert func(map[string]any) map[string]any) any {
	if schema, is := value.(map[string]any); is {
		return convert(schema)
	}
	return value
}

// asTheyAre are the keywords that OpenAPI v3 and JSON Schema understand alike. Formats are left out: the API server knows few.
var asTheyAre = []string{"enum", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}

// narrowing is what a schema says of the value itself, and in its logical parts.
func narrowing(schema map[string]any) map[string]any {
	made := map[string]any{}
	for _, keyword := range asTheyAre {
		if value, has := schema[keyword]; has {
			made[keyword] = value
		}
	}
	switch kind, _ := schema["type"].(string); {
	case schema["x-kubernetes-int-or-string"] == true:
		made["type"] = []any{"integer", "string"}
	case kind != "":
		made["type"] = []any{kind}
	}
	if schema["nullable"] == true && made["type"] != nil {
		made["type"] = append(made["type"].([]any), "null")
		delete(made, "enum") // null need not be in it
	}
	if pattern, _ := schema["pattern"].(string); pattern != "" {
		if _, err := regexp.Compile(pattern); err == nil {
			made["pattern"] = pattern
		}
	}
	for _, bound := range []string{"Minimum", "Maximum"} { // in OpenAPI v3 a yes or no beside the bound
		plain := map[string]string{"Minimum": "minimum", "Maximum": "maximum"}[bound]
		if schema["exclusive"+bound] == true {
			made["exclusive"+bound] = made[plain]
			delete(made, plain)
		}
	}
	for _, logical := range []string{"allOf", "anyOf", "oneOf"} {
		if parts, _ := schema[logical].([]any); len(parts) > 0 {
			all := make([]any, len(parts))
			for i, part := range parts {
				all[i] = converted(part, logicalPart)
			}
			made[logical] = all
		}
	}
	if not, has := schema["not"]; has {
		made["not"] = converted(not, logicalPart)
	}
	return made
}

// logicalPart is a schema below allOf, anyOf, oneOf or not.
func logicalPart(schema map[string]any) map[string]any {
	made := narrowing(schema)
	if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 {
		inner := make(map[string]any, len(properties))
		for name, property := range properties {
			inner[name] = converted(property, logicalPart)
		}
		made["properties"] = inner
	}
	if required, has := schema["required"]; has {
		made["required"] = required
	}
	if items, has := schema["items"]; has {
		made["items"] = converted(items, logicalPart)
	}
	return made
}
