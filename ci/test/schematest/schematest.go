// Package schematest makes the JSON Schema of a file that people write, for their editors, from the Go types that it is
// read into, their comments, and what is known of their fields.
package schematest

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Options are what the types and the facts do not say.
type Options struct {
	Title string
	// Texts are the schemas of types that are written as text; nil from it is a type's own.
	Texts func(reflect.Type) *jsonschema.Schema
	// Rules adds to the schema of the field at a path what more than one value has a part in.
	Rules func(path string, schema *jsonschema.Schema)
}

// Make returns the schema of the document that value, a pointer to a struct in the test's own folder, is read from.
func Make(t *testing.T, value any, grammar strictyaml.Schema, options Options) string {
	t.Helper()
	typ := reflect.TypeOf(value).Elem()
	g := generator{jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: options.Texts}, grammar, options.Rules}
	if err := g.AddGoComments(typ.PkgPath(), ".", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	schema := g.Reflect(value)
	schema.Title = options.Title
	g.describe(schema, typ, "")
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// Fields are the paths of all fields that a document of the type can have.
func Fields(typ reflect.Type, grammar strictyaml.Schema) map[string]bool {
	known := map[string]bool{}
	var collect func(reflect.Type, string)
	collect = func(typ reflect.Type, path string) {
		known[path] = true
		switch {
		case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map:
			collect(typ.Elem(), path+"[]")
		case grammar.IsSection(typ):
			for i, name := range strictyaml.FieldNames(typ) {
				collect(typ.Field(i).Type, strictyaml.Join(path, name))
			}
		}
	}
	collect(typ, "")
	return known
}

// generator adds to what a reflector makes of the types what only the facts know.
type generator struct {
	jsonschema.Reflector
	grammar strictyaml.Schema
	rules   func(string, *jsonschema.Schema)
}

func (g *generator) describe(schema *jsonschema.Schema, typ reflect.Type, path string) {
	apply(g.grammar.Facts.Of(path), schema)
	switch {
	case typ.Kind() == reflect.Slice:
		g.describe(schema.Items, typ.Elem(), path+"[]")
	case typ.Kind() == reflect.Map:
		g.describe(schema.AdditionalProperties, typ.Elem(), path+"[]")
	case g.grammar.IsSection(typ):
		schema.Description = g.comment(typ, "")
		schema.Required = nil
		for i, name := range strictyaml.FieldNames(typ) {
			property, _ := schema.Properties.Get(name)
			g.describe(property, typ.Field(i).Type, strictyaml.Join(path, name))
			property.Description = g.comment(typ, typ.Field(i).Name)
			if !g.grammar.Facts.MayMiss(strictyaml.Join(path, name)) {
				schema.Required = append(schema.Required, name)
			}
		}
	}
	if g.rules != nil {
		g.rules(path, schema)
	}
	otherwise(g.grammar.Facts.Of(path), schema)
}

// otherwise adds the shorter form that a value may be written in.
func otherwise(f strictyaml.Fact, schema *jsonschema.Schema) {
	full := *schema
	full.Description = ""
	switch {
	case f.Instead != "":
		*schema = jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: f.Instead}, &full}}
	case f.Single:
		one := *full.Items
		*schema = jsonschema.Schema{OneOf: []*jsonschema.Schema{&one, &full}}
	}
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
