package browsercheck

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/site/browsercheck/pagechoice"
)

var sample = Report{
	Site: "https://blog.example", Server: "http://site:8080", Policy: "default-src 'self'", Browser: "Chrome/1", Widths: []int{390, 1280},
	Pages: []pagechoice.Page{{Path: "/", Alike: 1, Shows: []string{"inline script 1", "style attribute"}}, {Path: "/a/", Alike: 7, Shows: []string{}}},
	Of:    9, LeftOut: 2, Seconds: 4.2, Anyway: 1,
	Foreign: []Foreign{{"a.example", 3, 1}, {"b.example", 1, 0}},
	Findings: []Finding{
		{Rule: ruleConsole, Cause: "a|b", Count: 4, Pages: 2, Examples: []Example{{"/a/", []int{390}, "/js/main.0123456789abcdef0123456789abcdef.js:3"}, {"/", []int{390, 1280}, ""}}},
		{Rule: ruleRestless, Cause: "slow", Warning: true, Count: 1, Pages: 1, Examples: []Example{{"/", []int{390}, ""}}},
	},
}

const sampleText = `https://blog.example in Chrome/1 at 390 and 1280 pixels
policy: default-src 'self'
2 of 9 pages opened:
  / (layout of 1 page): inline script 1, style attribute
  /a/ (layout of 7 pages)
error: a|b [console-error], 4 places on 2 pages
  /a/ at 390: /js/main.01234567….js:3
  / at 390 and 1280
warning: slow [restless], 1 place on 1 page
  / at 390
note: 2 pages more would show something new; 2 is the most that are opened
note: 1 error not counted: it is the same without the headers
note: 1 of 4 requests to other hosts failed (a.example): what these would load in turn was not seen
1 error, 1 warning, 4 seconds
`

const sampleMarkdown = `2 of 9 pages at 390 and 1280 pixels: 1 error, 1 warning.

| | what | cause | places | example |
|---|---|---|---|---|
| error | console-error | ` + "`a\\|b`" + ` | 4 | ` + "`/a/ at 390: /js/main.01234567….js:3`" + ` |
| warning | restless | ` + "`slow`" + ` | 1 | ` + "`/ at 390`" + ` |

- 2 pages more would show something new; 2 is the most that are opened
- 1 error not counted: it is the same without the headers
- 1 of 4 requests to other hosts failed (a.example): what these would load in turn was not seen
`

func TestTheReportIsForPeopleAndPrograms(t *testing.T) {
	for format, want := range map[string]string{"text": sampleText, "Markdown": sampleMarkdown} {
		if got, err := rendering.As(format, sample); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, got, want)
		}
	}
	text, err := rendering.As("json", sample)
	if err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, sample) {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := rendering.As("yaml", sample); err == nil || !strings.Contains(err.Error(), "text, json or markdown") {
		t.Errorf("%v", err)
	}
}
