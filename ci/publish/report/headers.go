package report

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"tazlab.net/castle/ci/publish/site/siteheaders"
)

// Headers are the security headers that the image sends.
type Headers siteheaders.Headers

// ReadHeaders reads what `castle-publish image --headers-out` writes. Without a name there are none.
func ReadHeaders(name string) (*Headers, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the headers: %w", err)
	}
	headers := &Headers{}
	if err := json.Unmarshal(data, headers); err != nil {
		return nil, fmt.Errorf("%s is not what castle-publish image writes: %w", name, err)
	}
	return headers, nil
}

// rows are one row. Strict headers are the same for every site, so their name says all.
func (h *Headers) rows() []row {
	if h == nil {
		return nil
	}
	value := h.Mode
	if n := len(h.Weak); n > 0 {
		value = fmt.Sprintf("%s, weak points: %d", h.Mode, n)
	}
	return []row{{"headers", value}}
}

// text is the section of the report for a person, empty where the row says all.
func (h *Headers) text() string {
	if !h.differ() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s", indented(h.lines()))
	for _, weak := range siteheaders.Brief(h.Weak, listAll) {
		fmt.Fprintf(&b, "  weak: %s\n", weak)
	}
	return b.String()
}

// markdown is the same for GitHub's job summary.
func (h *Headers) markdown() string {
	if !h.differ() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Join(h.lines(), "\n"))
	for i, weak := range siteheaders.Brief(h.Weak, listAll) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- weak: `%s`\n", strings.ReplaceAll(weak, "`", "'"))
	}
	return b.String()
}

// differ says whether there is more to say than the mode.
func (h *Headers) differ() bool {
	return h != nil && h.Mode != string(siteheaders.Strict) && h.Mode != string(siteheaders.Off)
}

// lines are the headers, the policy a directive a line.
func (h *Headers) lines() []string {
	lines := []string{"Content-Security-Policy:"}
	for directive := range strings.SplitSeq(h.ContentSecurityPolicy, ";") {
		lines = append(lines, wrap("  "+strings.TrimSpace(directive), "      ")...)
	}
	for _, field := range []row{
		{"X-Frame-Options", h.FrameOptions}, {"Permissions-Policy", h.PermissionsPolicy}, {"Cross-Origin-Opener-Policy", h.OpenerPolicy},
	} {
		if field.value != "" {
			lines = append(lines, field.name+": "+field.value)
		}
	}
	return lines
}

// width is where lines of the section break, at a blank.
const width = 110

// wrap breaks a line; all but the first begin with indent.
func wrap(line, indent string) []string {
	var lines []string
	for len(line) > width {
		at := strings.LastIndexByte(line[:width], ' ')
		if at <= len(indent) {
			if at = strings.IndexByte(line[width:], ' '); at < 0 {
				break
			}
			at += width
		}
		lines, line = append(lines, line[:at]), indent+line[at+1:]
	}
	return append(lines, line)
}

func indented(lines []string) string { return "  " + strings.Join(lines, "\n  ") + "\n" }
