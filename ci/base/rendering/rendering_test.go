package rendering

import (
	"encoding/json"
	"testing"

	"tazlab.net/castle/ci/base/redact"
)

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

func TestASecretIsTakenOutOfAResultThatWouldEncodeItOnceMore(t *testing.T) {
	const secret = `ca"na|r` + "`" + `y`
	redact.Add(secret)
	twice, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err = json.Marshal(string(twice)); err != nil {
		t.Fatal(err)
	}
	quoted, err := As("json", greeting{"who is " + string(twice)})
	if want := "{\n  \"name\": \"who is \\\"\\\\\\\"[redacted]\\\\\\\"\\\"\"\n}\n"; quoted != want || err != nil {
		t.Errorf("got %s, %v; want %s", quoted, err, want)
	}
	if got, err := As("markdown", greeting{secret}); got != "Hello `[redacted]`\n" || err != nil {
		t.Errorf("got %s, %v", got, err)
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
