package verify

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"tazlab.net/castle/ci/base/rendering"
)

// Result is what was seen. Its JSON form is part of the interface: fields are added, never renamed.
type Result struct {
	Image  string `json:"image"`
	Tag    string `json:"tag"`
	Digest string `json:"digest"` // as the registry has it
	// Commit is the GitOps commit that named the image, Pinned says that the manifest has the digest, too.
	Commit string `json:"commit"`
	Pinned bool   `json:"pinned"`
	// Key is the SHA-256 of the public key that signatures were verified with.
	Key string `json:"key"`
	// Parts is how many the SBOM lists.
	Parts  int     `json:"parts,omitempty"`
	Checks []Check `json:"checks"`
}

// Check is one thing that has to hold. Problem and Fix are empty where it does.
type Check struct {
	Name    string `json:"name"` // image, digest, signature, SBOM
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

func (r *Result) add(name, problem, fix string) {
	r.Checks = append(r.Checks, Check{name, problem, fix})
}

// Failed says whether anything is missing or wrong.
func (r Result) Failed() bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Problem != "" })
}

func (r Result) headline() string {
	if r.Failed() {
		return "Not verified: " + r.Image + ":" + r.Tag
	}
	return "Verified: " + r.Image + ":" + r.Tag
}

func (r Result) says(c Check) string {
	switch {
	case c.Problem != "":
		return c.Problem
	case c.Name == "image":
		return r.Digest
	case c.Name == "digest" && r.Pinned:
		return "the manifest pins it"
	case c.Name == "digest":
		return "as GitOps commit " + rendering.ShortSHA(r.Commit) + " published it"
	case c.Name == "SBOM":
		return fmt.Sprintf("SPDX, %d parts, signed with this key", r.Parts)
	default:
		return "key " + r.Key
	}
}

func (c Check) mark() string {
	if c.Problem != "" {
		return "failed"
	}
	return "ok"
}

// Text is the result for a person.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.headline())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, check := range r.Checks {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", check.mark(), check.Name, r.says(check))
		if check.Fix != "" {
			fmt.Fprintf(table, "  \t\t→ %s\n", check.Fix)
		}
	}
	table.Flush()
	return b.String()
}

// Markdown is the result for GitHub's job summary.
func (r Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| | | |\n|---|---|---|\n", r.headline())
	for _, check := range r.Checks {
		said := rendering.Code(r.says(check))
		if check.Fix != "" {
			said += " → " + check.Fix
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", check.mark(), check.Name, said)
	}
	return b.String()
}
