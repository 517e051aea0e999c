package settings

import (
	"reflect"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/test/schematest"
)

// The schema is made by `go generate ./ci/publish/settings`.
func TestTheSchemaIsTheOneThatTypesAndFactsMake(t *testing.T) {
	golden.Match(t, "../../../castle.schema.json", schematest.Make(t, &File{}, grammar, schematest.Options{Title: "Castle"}))
}

func TestEveryFactIsOneOfAField(t *testing.T) {
	known := schematest.Fields(reflect.TypeFor[File](), grammar)
	for path := range facts {
		if !known[path] {
			t.Errorf("facts speak of %s, which no castle.yaml holds", path)
		}
	}
	for path, fact := range facts {
		if (fact.Form != nil) != (fact.What != "") {
			t.Errorf("%s: a form wants words for a mistake, and words want a form", path)
		}
	}
}
