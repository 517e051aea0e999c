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
		case isSection(typ):
			for i, name := range fieldNames(typ) {
				collect(typ.Field(i).Type, join(path, name))
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
	apply(factOf(path), schema)
	switch {
	case typ.Kind() == reflect.Slice:
		g.describe(schema.Items, typ.Elem(), path+"[]")
	case isSection(typ):
		schema.Description = g.comment(typ, "")
		schema.Required = nil
		for i, name := range fieldNames(typ) {
			property, _ := schema.Properties.Get(name)
			g.describe(property, typ.Field(i).Type, join(path, name))
			property.Description = g.comment(typ, typ.Field(i).Name)
			if !mayMiss(join(path, name)) {
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

func apply(f fact, schema *jsonschema.Schema) {
	for _, word := range f.words {
		schema.Enum = append(schema.Enum, word)
	}
	if f.form != nil {
		schema.Pattern = f.form.String()
	}
	if f.least != 0 {
		schema.Minimum = json.Number(strconv.Itoa(f.least))
	}
	if f.most != 0 {
		schema.Maximum = json.Number(strconv.Itoa(f.most))
	}
	if f.nonempty {
		schema.MinItems = new(uint64(1))
	}
	schema.UniqueItems = f.distinct
	schema.Default = f.byDefault
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
