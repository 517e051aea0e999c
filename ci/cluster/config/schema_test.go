package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/strictyaml"
)

const schemaFile = "../../../terragrunt/cluster.schema.json"

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance reads YAML as the JSON values that a schema speaks of.
func instance(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestTheLiveDescriptionsFollowTheSchemaThatTheyName(t *testing.T) {
	schema := compileSchema(t)
	want, err := filepath.Abs(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"blue", "sandbox"} {
		file := filepath.Join(live, name, File)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance(t, data)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		relative, found := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		named, err := filepath.Abs(filepath.Join(live, name, relative))
		if !found || err != nil || named != want {
			t.Errorf("%s: the first line names the schema %s (%v), want %s", file, named, err, want)
		}
	}
}

func TestTheSchemaRefusesWhatAnEditorCanSee(t *testing.T) {
	schema := compileSchema(t)
	for _, name := range []string{
		"field-unknown", "role-unknown", "role-missing", "platform-unknown", "section-missing", "memory-with-a-unit", "address-not-a-number",
		"disk-encryption-word", "extension-missing-for-longhorn", "git-url-with-credentials", "state-s3-without-bucket", "state-s3-but-local",
		"state-s3-section-missing", "state-s3-without-endpoint", "talos-version-unknown", "schematic-not-an-id", "dns-empty",
		"sops-files-bad", "sops-files-empty", "infisical-a-word", "infisical-missing",
		"platform-aws", "aws-field-on-proxmox", "aws-section-missing", "aws-instance-type-missing",
		"talos-of-proxmox-too", "talos-install-disk-missing", "talos-install-disk-bad", "talos-address-missing", "talos-mac-bad", "talos-fingerprint-bad", "install-disk-on-proxmox",
		"vlan-out-of-range", "volume-not-a-name", "storage-a-word", "load-balancer-a-word", "load-balancer-missing",
	} {
		data, err := os.ReadFile(filepath.Join("testdata/invalid", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(instance(t, data)) == nil {
			t.Errorf("%s passes the schema", name)
		}
	}
}

func TestSchemaAndTypesNameTheSameFields(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	sameFields(t, reflect.TypeFor[Cluster](), root, "")
}

// sameFields compares names, what must be there, and that a person is told what each field is for.
func sameFields(t *testing.T, typ reflect.Type, schema map[string]any, path string) {
	t.Helper()
	if text, _ := schema["description"].(string); text == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%q has no description in the schema", path)
	}
	if forms, _ := schema["oneOf"].([]any); len(forms) == 2 { // a short form, and the one that is meant
		schema = forms[1].(map[string]any)
	}
	switch {
	case typ.Kind() == reflect.Slice:
		items, _ := schema["items"].(map[string]any)
		sameFields(t, typ.Elem(), items, path+"[]")
	case grammar.IsSection(typ):
		properties, _ := schema["properties"].(map[string]any)
		var names []string
		for name := range properties {
			names = append(names, name)
		}
		fields := strictyaml.FieldNames(typ)
		slices.Sort(names)
		slices.Sort(fields)
		if !slices.Equal(names, fields) {
			t.Errorf("%q: the schema has the fields %v, the Go type %v", path, names, fields)
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%q lets unknown fields pass", path)
		}
		var must []string
		required, _ := schema["required"].([]any)
		for _, name := range required {
			must = append(must, name.(string))
		}
		for i := range typ.NumField() {
			name := strictyaml.FieldNames(typ)[i]
			at := strictyaml.Join(path, name)
			// The schema knows that s3 has a bucket whenever it is there; Load speaks of the backend instead.
			if slices.Contains(must, name) == facts.MayMiss(at) && at != "state.s3.bucket" {
				t.Errorf("%s: required by the schema %t, may miss in Load %t", at, slices.Contains(must, name), facts.MayMiss(at))
			}
			if property, ok := properties[name].(map[string]any); ok {
				sameFields(t, typ.Field(i).Type, property, at)
			}
		}
	}
}
