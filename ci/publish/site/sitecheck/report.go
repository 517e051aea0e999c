package sitecheck

import (
	"tazlab.net/castle/ci/base/findings"
	"tazlab.net/castle/ci/base/rendering"
)

// Report is what was looked at and what was found.
type Report struct {
	Pages int `json:"pages"` // HTML files read
	Links int `json:"links"` // references resolved inside the site
	findings.Report
}

// Text is the report for a person.
func (r Report) Text() string { return r.Report.Text(r.checked()) }

// Markdown is the report for GitHub's job summary.
func (r Report) Markdown() string { return r.Report.Markdown(r.checked()) }

func (r Report) checked() string {
	return rendering.Count(r.Pages, "page") + ", " + rendering.Count(r.Links, "link")
}
