package manifest

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what Bump returns into the golden cases")

// goldenCase is one file of testdata: an address, a manifest, and either the manifest that must come out or the error.
// In a quoted case every line of a manifest is a Go string, so that any byte can be written visibly.
type goldenCase struct {
	archive     *txtar.Archive
	sel         Selector
	tag, digest string
	quoted      bool
	in          []byte
}

func readGolden(t testing.TB, path string) goldenCase {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := goldenCase{archive: a}
	fields := map[string]*string{"image": &c.sel.Image, "container": &c.sel.Container, "resource": &c.sel.Resource,
		"tag": &c.tag, "digest": &c.digest}
	for line := range strings.Lines(c.section("address")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch field := fields[key]; {
		case field != nil:
			*field = value
		case key == "quoted":
			c.quoted = true
		default:
			t.Fatalf("%s: unknown key %q in the address", path, key)
		}
	}
	c.in = c.decode(t, c.section("in.yaml"))
	return c
}

func (c goldenCase) section(name string) string {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func (c goldenCase) decode(t testing.TB, s string) []byte {
	t.Helper()
	if !c.quoted {
		return []byte(s)
	}
	var out []byte
	for line := range strings.Lines(s) {
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("line %s of a quoted case: %v", line, err)
		}
		out = append(out, text...)
	}
	return out
}

func (c goldenCase) encode(b []byte) []byte {
	if !c.quoted {
		return b
	}
	var out []byte
	for line := range bytes.Lines(b) {
		out = append(strconv.AppendQuoteToASCII(out, string(line)), '\n')
	}
	return out
}

func (c goldenCase) write(t *testing.T, path, name string, data []byte) {
	t.Helper()
	var files []txtar.File
	for _, f := range c.archive.Files {
		if f.Name == "address" || f.Name == "in.yaml" {
			files = append(files, f)
		}
	}
	files = append(files, txtar.File{Name: name, Data: data})
	c.archive.Files = files
	if err := os.WriteFile(path, txtar.Format(c.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func goldenFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	return files
}

// TestGolden runs the cases of testdata, each named by its situation and explained at its top.
func TestGolden(t *testing.T) {
	for _, path := range goldenFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			c := readGolden(t, path)
			before := bytes.Clone(c.in)
			out, change, err := Bump(c.in, c.sel, c.tag, c.digest)
			if !bytes.Equal(c.in, before) {
				t.Error("Bump changed its input")
			}
			if err != nil {
				var internal *InternalError
				if errors.As(err, &internal) {
					t.Fatal(err)
				}
				if *update {
					c.write(t, path, "error", []byte(err.Error()+"\n"))
				} else if want := c.section("error"); want != err.Error()+"\n" {
					t.Errorf("error:\n%s\nwant:\n%s", err, want)
				}
				return
			}
			checkOnlyTheAddressedChanged(t, c.in, out, change)
			if *update {
				c.write(t, path, "out.yaml", c.encode(out))
				return
			}
			want := c.section("out.yaml")
			if want == "" {
				t.Fatalf("Bump succeeded, want the error:\n%s", c.section("error"))
			}
			if !bytes.Equal(out, c.decode(t, want)) {
				t.Errorf("got:\n%s\nwant:\n%s", c.encode(out), want)
			}
		})
	}
}
