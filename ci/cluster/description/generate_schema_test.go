package description

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"tazlab.net/castle/ci/base/strictyaml"
)

// The schema is made by `go generate ./ci/cluster/description`.
func TestTheSchemaIsTheOneThatTypesAndFactsMake(t *testing.T) {
	g := generator{jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: addresses}}
	if err := g.AddGoComments(reflect.TypeFor[Cluster]().PkgPath(), ".", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	schema := g.Reflect(&Cluster{})
	schema.Title = "Castle cluster"
	g.describe(schema, reflect.TypeFor[Cluster](), "")
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, string(text)+"\n")
}

func TestEveryFactIsOneOfAField(t *testing.T) {
	known := map[string]bool{}
	var collect func(reflect.Type, string)
	collect = func(typ reflect.Type, path string) {
		known[path] = true
		switch {
		case typ.Kind() == reflect.Slice:
			collect(typ.Elem(), path+"[]")
		case grammar.IsSection(typ):
			for i, name := range strictyaml.FieldNames(typ) {
				collect(typ.Field(i).Type, strictyaml.Join(path, name))
			}
		}
	}
	collect(reflect.TypeFor[Cluster](), "")
	for path := range maps.Keys(facts) {
		if !known[path] {
			t.Errorf("facts speak of %s, which no description holds", path)
		}
	}
}

// addresses are text in a description; how much of it an editor can judge.
func addresses(typ reflect.Type) *jsonschema.Schema {
	switch typ {
	case addressType:
		return &jsonschema.Schema{Type: "string", Format: "ipv4"}
	case prefixType:
		return &jsonschema.Schema{Type: "string", Pattern: `^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$`}
	}
	return nil
}

// generator adds to what a reflector makes of the types what only the facts know.
type generator struct{ jsonschema.Reflector }

func (g *generator) describe(schema *jsonschema.Schema, typ reflect.Type, path string) {
	apply(facts.Of(path), schema)
	switch {
	case typ.Kind() == reflect.Slice:
		g.describe(schema.Items, typ.Elem(), path+"[]")
	case grammar.IsSection(typ):
		schema.Description = g.comment(typ, "")
		schema.Required = nil
		for i, name := range strictyaml.FieldNames(typ) {
			property, _ := schema.Properties.Get(name)
			g.describe(property, typ.Field(i).Type, strictyaml.Join(path, name))
			property.Description = g.comment(typ, typ.Field(i).Name)
			if !facts.MayMiss(strictyaml.Join(path, name)) {
				schema.Required = append(schema.Required, name)
			}
		}
	}
	rules(path, schema)
}

// comment is that of a type or of one of its fields, on one line.
func (g *generator) comment(typ reflect.Type, field string) string {
	key := typ.PkgPath() + "." + typ.Name()
	if field != "" {
		key += "." + field
	}
	return strings.Join(strings.Fields(g.CommentMap[key]), " ")
}

func apply(f strictyaml.Fact, schema *jsonschema.Schema) {
	for _, word := range f.Words {
		schema.Enum = append(schema.Enum, word)
	}
	if f.Form != nil {
		schema.Pattern = f.Form.String()
	}
	if f.Least != 0 {
		schema.Minimum = json.Number(strconv.Itoa(f.Least))
	}
	if f.Most != 0 {
		schema.Maximum = json.Number(strconv.Itoa(f.Most))
	}
	if f.Nonempty {
		schema.MinItems = new(uint64(1))
	}
	schema.UniqueItems = f.Distinct
	schema.Default = f.Default
}

// rules adds the rules that more than one value has a part in, as far as a schema can say them.
func rules(path string, schema *jsonschema.Schema) {
	switch path {
	case "talos.version":
		var known []string
		for _, minor := range minors() {
			known = append(known, strconv.Itoa(minor))
		}
		schema.Pattern = fmt.Sprintf(`^v1\.(%s)\.\d+$`, strings.Join(known, "|"))
	case "talos.extensions":
		for _, name := range required {
			schema.AllOf = append(schema.AllOf, &jsonschema.Schema{Contains: &jsonschema.Schema{Const: name}})
		}
	case "state":
		backend := jsonschema.NewProperties()
		backend.Set("backend", &jsonschema.Schema{Const: StateS3})
		none := jsonschema.NewProperties()
		none.Set("s3", jsonschema.FalseSchema)
		schema.If = &jsonschema.Schema{Properties: backend, Required: []string{"backend"}}
		schema.Then = &jsonschema.Schema{Required: []string{"s3"}}
		schema.Else = &jsonschema.Schema{Properties: none}
	case "state.s3":
		// Load speaks of the backend where the bucket is missing; an editor sees only the section.
		schema.Required = slices.Insert(schema.Required, 0, "bucket")
		schema.AnyOf = []*jsonschema.Schema{{Required: []string{"region"}}, {Required: []string{"endpoint"}}}
	}
}
