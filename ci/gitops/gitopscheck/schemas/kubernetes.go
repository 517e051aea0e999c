package schemas

import (
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kubernetes are the schemas of the built-in kinds.
type kubernetes struct {
	names    map[gvk]string // the definition of each kind
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// document is what the references of the definitions go through.
const document = "kubernetes.json"

const kindsOfDefinition = "x-kubernetes-group-version-kind"

func newKubernetes(given KubernetesSchemas) *kubernetes {
	k := &kubernetes{names: map[gvk]string{}, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	strict := map[string]any{}
	for name, definition := range given.Definitions {
		definition := definition.(map[string]any)
		// What belongs to several kinds, such as DeleteOptions, is nothing that is applied.
		if kinds, _ := definition[kindsOfDefinition].([]any); len(kinds) == 1 {
			of := kinds[0].(map[string]any)
			k.names[gvk{of["group"].(string), of["version"].(string), of["kind"].(string)}] = name
		}
		strict[name] = strictDefinition(name, definition)
	}
	_ = k.compiler.AddResource(document, map[string]any{"definitions": strict}) // a document under a name of its own
	return k
}

// strictDefinition is a definition of OpenAPI 2.0 as a JSON Schema that allows no other fields. Types that are written in
// several ways are not what the document says: its IntOrString and Quantity are texts.
func strictDefinition(name string, definition map[string]any) map[string]any {
	switch {
	case strings.HasSuffix(name, ".intstr.IntOrString"):
		return map[string]any{"type": []any{"string", "integer"}}
	case strings.HasSuffix(name, ".resource.Quantity"):
		return map[string]any{"type": []any{"string", "number"}}
	}
	properties, has := definition["properties"].(map[string]any)
	if _, decided := definition["additionalProperties"]; !has || len(properties) == 0 || decided {
		return definition
	}
	strict := maps.Clone(definition)
	strict["additionalProperties"] = false
	return strict
}

func (k *kubernetes) check(name string, object map[string]any) ([]Problem, error) {
	schema := k.compiled[name]
	if schema == nil {
		var err error
		if schema, err = k.compiler.Compile(document + "#/definitions/" + name); err != nil {
			return nil, err
		}
		k.compiled[name] = schema
	}
	// The API server decodes null as if the field were not there, and takes the status from nobody who applies.
	bare := withoutNulls(object).(map[string]any)
	delete(bare, "status")
	return problems(schema, bare), nil
}

// withoutNulls is a copy without the fields that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, inner := range value {
			if inner != nil {
				kept[key] = withoutNulls(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutNulls(inner)
		}
		return kept
	}
	return value
}
