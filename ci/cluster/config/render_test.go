package config

import (
	"path/filepath"
	"reflect"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
)

func TestTheTextOfADescriptionIsADescription(t *testing.T) {
	for _, name := range []string{"blue", "sandbox"} {
		c, err := Load(filepath.Join(live, name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := rendering.As("TEXT", c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(filepath.Join(live, name, File), "", []byte(text))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%v\n%s", err, text)
		}
		markdown, err := rendering.As("markdown", c)
		if err != nil || markdown != "```yaml\n"+text+"```\n" {
			t.Errorf("%v\n%s", err, markdown)
		}
	}
}
