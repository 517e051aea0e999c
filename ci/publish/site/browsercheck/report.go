package browsercheck

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/site/browsercheck/pagechoice"
)

// Rules: what can be wrong.
const (
	ruleViolation = "violation"
	ruleException = "exception"
	ruleConsole   = "console-error"
	ruleMissing   = "missing"
	ruleStatus    = "status"
	ruleCrash     = "crash"
	ruleNotOpened = "not-opened"
	ruleRestless  = "restless"
)

// rules in the order of the report.
var rules = map[string]struct {
	order    int
	compared bool // not counted where it is there without the headers as well
	warning  bool
}{
	ruleNotOpened: {order: 0},
	ruleCrash:     {order: 1},
	ruleStatus:    {order: 2},
	ruleViolation: {order: 3, compared: true},
	ruleException: {order: 4, compared: true},
	ruleConsole:   {order: 5, compared: true},
	ruleMissing:   {order: 6},
	ruleRestless:  {order: 7, warning: true},
}

// maxExamples is how many places of a finding are shown.
const maxExamples = 3

// Report is what a check saw. Its JSON form is part of the interface: fields are added, never renamed.
type Report struct {
	Site    string            `json:"site"`   // the address that the browser saw
	Server  string            `json:"server"` // what was asked for it
	Policy  string            `json:"policy"` // the home page's Content-Security-Policy; "" is none
	Browser string            `json:"browser"`
	Widths  []int             `json:"widths"`
	Pages   []pagechoice.Page `json:"pages"`   // those opened
	Of      int               `json:"of"`      // pages of the site
	LeftOut int               `json:"leftOut"` // pages that show something new and were too many
	Seconds float64           `json:"seconds"`
	// Anyway counts what was not counted: errors that are there without the headers as well.
	Anyway   int       `json:"anyway"`
	Foreign  []Foreign `json:"foreign"` // other hosts that were asked, refused requests left out
	Findings []Finding `json:"findings"`
}

// Foreign is another host. What fails there is not the site's fault, but then nobody saw what it would have done.
type Foreign struct {
	Host     string `json:"host"`
	Requests int    `json:"requests"`
	Failed   int    `json:"failed"`
}

// Finding is everything that has one cause.
type Finding struct {
	Rule     string    `json:"rule"`
	Cause    string    `json:"cause"`
	Warning  bool      `json:"warning,omitempty"` // worth a look, not worth a failure
	Count    int       `json:"count"`             // places, each counted once, whatever the width
	Pages    int       `json:"pages"`
	Examples []Example `json:"examples"` // the first three
}

// Example is one place.
type Example struct {
	Page   string `json:"page"`
	Widths []int  `json:"widths"`
	Where  string `json:"where,omitempty"` // a file and a line, and what it asks for
}

// Errors counts the findings that are not warnings; a site is in order when it is 0.
func (r Report) Errors() int {
	errors := 0
	for _, finding := range r.Findings {
		if !finding.Warning {
			errors++
		}
	}
	return errors
}

// collection groups what was seen.
type collection struct {
	found   map[[2]string]map[[2]string]*Example // by rule and cause, then by page and place
	order   map[[2]string][]*Example
	foreign map[string]*Foreign
	anyway  map[string]bool
}

func newCollection() *collection {
	return &collection{map[[2]string]map[[2]string]*Example{}, map[[2]string][]*Example{}, map[string]*Foreign{}, map[string]bool{}}
}

func (c *collection) add(v view, seen *sight, anyway map[string]bool) {
	for _, found := range seen.problems {
		if key := found.rule + " " + found.cause; rules[found.rule].compared && anyway[key] {
			c.anyway[v.page.Path+" "+key] = true
			continue
		}
		kind, place := [2]string{found.rule, found.cause}, [2]string{v.page.Path, found.where}
		if c.found[kind] == nil {
			c.found[kind] = map[[2]string]*Example{}
		}
		example := c.found[kind][place]
		if example == nil {
			example = &Example{Page: v.page.Path, Where: found.where}
			c.found[kind][place] = example
			c.order[kind] = append(c.order[kind], example)
		}
		if !slices.Contains(example.Widths, v.width) {
			example.Widths = append(example.Widths, v.width)
		}
	}
	for name, host := range seen.foreign {
		if c.foreign[name] == nil {
			c.foreign[name] = &Foreign{Host: name}
		}
		c.foreign[name].Requests += host.Requests
		c.foreign[name].Failed += host.Failed
	}
}

// into sorts what is most serious first, then what is most frequent.
func (c *collection) into(report *Report) {
	report.Anyway = len(c.anyway)
	for _, name := range slices.Sorted(maps.Keys(c.foreign)) {
		report.Foreign = append(report.Foreign, *c.foreign[name])
	}
	for kind, examples := range c.order {
		finding := Finding{Rule: kind[0], Cause: kind[1], Warning: rules[kind[0]].warning, Count: len(examples)}
		pages := map[string]bool{}
		for i, example := range examples {
			pages[example.Page] = true
			if i < maxExamples {
				finding.Examples = append(finding.Examples, *example)
			}
		}
		finding.Pages = len(pages)
		report.Findings = append(report.Findings, finding)
	}
	slices.SortFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rules[a.Rule].order, rules[b.Rule].order), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
}

// Text renders the report for a person.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s at %s pixels\n", r.Site, r.Browser, list(r.Widths))
	fmt.Fprintf(&b, "policy: %s\n", cmp.Or(r.Policy, "none"))
	fmt.Fprintf(&b, "%d of %s opened:\n", len(r.Pages), rendering.Count(r.Of, "page"))
	for _, page := range r.Pages {
		fmt.Fprintf(&b, "  %s\n", page)
	}
	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "%s\n", finding)
		for _, example := range finding.Examples {
			fmt.Fprintf(&b, "  %s\n", example)
		}
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	errors := r.Errors()
	fmt.Fprintf(&b, "%s, %s, %.0f seconds\n", rendering.Count(errors, "error"), rendering.Count(len(r.Findings)-errors, "warning"), r.Seconds)
	return b.String()
}

// Markdown renders the report for the summary of a job.
func (r Report) Markdown() string {
	var b strings.Builder
	errors := r.Errors()
	fmt.Fprintf(&b, "%d of %s at %s pixels: %s, %s.\n", len(r.Pages), rendering.Count(r.Of, "page"), list(r.Widths),
		rendering.Count(errors, "error"), rendering.Count(len(r.Findings)-errors, "warning"))
	if len(r.Findings) > 0 {
		b.WriteString("\n| | what | cause | places | example |\n|---|---|---|---|---|\n")
	}
	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", finding.level(), finding.Rule, rendering.Code(finding.Cause), finding.Count,
			rendering.Code(finding.Examples[0].String()))
	}
	b.WriteString("\n")
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	return b.String()
}

// notes are what the findings do not say.
func (r Report) notes() []string {
	var notes []string
	if r.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s more would show something new; %d is the most that are opened",
			rendering.Count(r.LeftOut, "page"), len(r.Pages)))
	}
	if r.Anyway > 0 {
		notes = append(notes, fmt.Sprintf("%s not counted: it is the same without the headers", rendering.Count(r.Anyway, "error")))
	}
	asked, failed := 0, 0
	var silent []string
	for _, host := range r.Foreign {
		asked += host.Requests
		failed += host.Failed
		if host.Failed > 0 {
			silent = append(silent, host.Host)
		}
	}
	if failed > 0 {
		notes = append(notes, fmt.Sprintf("%d of %s to other hosts failed (%s): what these would load in turn was not seen",
			failed, rendering.Count(asked, "request"), strings.Join(silent, ", ")))
	}
	return notes
}

func (f Finding) level() string {
	if f.Warning {
		return "warning"
	}
	return "error"
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s [%s], %s on %s", f.level(), f.Cause, f.Rule, rendering.Count(f.Count, "place"), rendering.Count(f.Pages, "page"))
}

func (e Example) String() string {
	text := fmt.Sprintf("%s at %s", e.Page, list(e.Widths))
	if e.Where != "" {
		text += ": " + longHash.ReplaceAllString(e.Where, "$1…")
	}
	return text
}

// longHash is a fingerprint in a file's name, of which a person needs only the beginning.
var longHash = regexp.MustCompile(`([0-9a-f]{8})[0-9a-f]{24,}`)

func list(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, number := range numbers {
		texts[i] = fmt.Sprint(number)
	}
	return strings.Join(texts, " and ")
}
