package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"tazlab.net/castle/ci/test/schematest"
)

// The schema is made by `go generate ./ci/cluster/config`.
func TestTheSchemaIsTheOneThatTypesAndFactsMake(t *testing.T) {
	text := schematest.Make(t, &Cluster{}, grammar, schematest.Options{Title: "Castle cluster", Texts: addresses, Rules: rules})
	golden(t, schemaFile, text)
}

func TestEveryFactIsOneOfAField(t *testing.T) {
	known := schematest.Fields(reflect.TypeFor[Cluster](), grammar)
	for path := range maps.Keys(facts) {
		if !known[path] {
			t.Errorf("facts speak of %s, which no description holds", path)
		}
	}
}

var one = uint64(1)

// addresses are text in a description; how much of it an editor can judge.
func addresses(typ reflect.Type) *jsonschema.Schema {
	switch typ {
	case addressType:
		return &jsonschema.Schema{Type: "string", Format: "ipv4"}
	case prefixType:
		return &jsonschema.Schema{Type: "string", Pattern: `^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$`}
	case manifestType:
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string", MinLength: &one}, {Type: "object"}}}
	case patchType:
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "object"}, {Type: "string", MinLength: &one}}}
	}
	return nil
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
	case "":
		// What Longhorn needs.
		without, extensions, talos, with := jsonschema.NewProperties(), &jsonschema.Schema{}, jsonschema.NewProperties(), jsonschema.NewProperties()
		without.Set("storage", &jsonschema.Schema{Const: none})
		for _, name := range required {
			extensions.AllOf = append(extensions.AllOf, &jsonschema.Schema{Contains: &jsonschema.Schema{Const: name}})
		}
		talos.Set("extensions", extensions)
		with.Set("talos", &jsonschema.Schema{Properties: talos})
		schema.If = &jsonschema.Schema{Properties: without, Required: []string{"storage"}}
		schema.Else = &jsonschema.Schema{Properties: with}
		schema.AllOf = []*jsonschema.Schema{ofPlatforms()}
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

// ofPlatforms says which fields the description of a platform must have, and which it must not.
func ofPlatforms() *jsonschema.Schema {
	is := func(platform string) *jsonschema.Schema {
		properties := jsonschema.NewProperties()
		properties.Set("platform", &jsonschema.Schema{Const: platform})
		return &jsonschema.Schema{Properties: properties, Required: []string{"platform"}}
	}
	branch := func(of string) *jsonschema.Schema {
		sections := map[string]*jsonschema.Schema{}
		section := func(name string) *jsonschema.Schema {
			if sections[name] == nil {
				sections[name] = &jsonschema.Schema{Properties: jsonschema.NewProperties()}
			}
			return sections[name]
		}
		for _, path := range slices.Sorted(maps.Keys(platformOnly)) {
			in, field := "", path
			if i := strings.LastIndexByte(path, '.'); i >= 0 {
				in, field = path[:i], path[i+1:]
			}
			switch {
			case has(of, path) && mayMiss[path]:
			case has(of, path):
				section(in).Required = append(section(in).Required, field)
			case facts.Of(path).Instead != "":
				section(in).Properties.Set(field, &jsonschema.Schema{Const: facts.Of(path).Instead})
			default:
				section(in).Properties.Set(field, jsonschema.FalseSchema)
			}
		}
		section("").Properties.Set("network", section("network"))
		section("").Properties.Set("nodes", &jsonschema.Schema{Items: section("nodes[]")})
		return section("")
	}
	return &jsonschema.Schema{If: is(PlatformAWS), Then: branch(PlatformAWS),
		Else: &jsonschema.Schema{If: is(PlatformTalos), Then: branch(PlatformTalos), Else: branch(PlatformProxmox)}}
}
