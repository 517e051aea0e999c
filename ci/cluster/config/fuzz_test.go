package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tazlab.net/castle/ci/base/strictyaml/strictyamltest"
)

// FuzzDescription starts from the examples and from every mistake that has a golden file. Whatever the file, each mistake is one line
// that names a line of it, and a description without any is handed over and read again as the same one.
func FuzzDescription(f *testing.F) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(live, "blue", File), filepath.Join(live, "sandbox", File)) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("cluster.yaml", "", data)
		if err != nil {
			strictyamltest.Check(t, err, data)
			return
		}
		value, err := c.HandOver()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Handed(value)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("handed over %+v, got %+v, %v", c, got, err)
		}
		if again, err := parse("cluster.yaml", "", []byte(value)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v is read again as %+v, %v", c, again, err)
		}
	})
}
