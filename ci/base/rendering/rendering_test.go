package rendering

import "testing"

type greeting struct {
	Name string `json:"name"`
}

func (g greeting) Text() string     { return "Hello " + g.Name + "\n" }
func (g greeting) Markdown() string { return "Hello " + Code(g.Name) + "\n" }

func TestAResultIsWrittenInTheNamedFormatWhateverItsCase(t *testing.T) {
	for format, want := range map[string]string{
		"text":     "Hello <a|`b`>\n",
		"TEXT":     "Hello <a|`b`>\n",
		"Markdown": "Hello `<a\\|'b'>`\n",
		"JSON":     "{\n  \"name\": \"<a|`b`>\"\n}\n",
	} {
		if got, err := As(format, greeting{"<a|`b`>"}); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", format, got, err, want)
		}
		if err := Check(format); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnknownFormatIsRefusedWithThoseThatThereAre(t *testing.T) {
	const want = `"yaml" is no format: want text, json or markdown`
	if err := Check("yaml"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := As("yaml", greeting{}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestANumberAgreesWithItsNoun(t *testing.T) {
	for n, want := range map[int]string{0: "0 pages", 1: "1 page", 2: "2 pages"} {
		if got := Count(n, "page"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
