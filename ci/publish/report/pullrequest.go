package report

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
)

// PullRequest is the one by which the manifest is changed.
type PullRequest struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	// Reused says that it was open before this run.
	Reused bool `json:"reused"`
	Merged bool `json:"merged"`
}

func (p PullRequest) words() string {
	switch {
	case p.Merged:
		return p.URL + ", merged"
	case p.Reused:
		return p.URL + ", was open already"
	}
	return p.URL + ", open"
}

// Proposal is the title and text of the pull request for a change, from the message of its commit. The text ends with the
// message's trailers, because a repository may take the message of a merge or a squash from it, and history reads them there.
func (r Result) Proposal(message string) (title, body string) {
	title, _, _ = strings.Cut(message, "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "Points %s at this image:\n\n| | |\n|---|---|\n", rendering.Code(r.GitOps.Path))
	for _, row := range []row{
		{"image", r.GitOps.Image},
		{"digest", r.Image.Digest},
		{"commit", strings.TrimSpace(r.Source.Commit + " " + r.Source.Subject)},
		{"repository", r.Source.Repository},
	} {
		if row.value != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", row.name, rendering.Code(row.value)) // as code, nobody is mentioned and nothing is linked
		}
	}
	fmt.Fprintf(&b, "\n```diff\n%s```\n\nThe registry has confirmed the digest. castle keeps this branch one commit ahead of its base and makes it anew where the "+
		"base has moved; it leaves the branch alone once somebody else has committed to it.\n", r.diff())
	paragraphs := strings.Split(strings.TrimSpace(message), "\n\n")
	fmt.Fprintf(&b, "\n%s\n", paragraphs[len(paragraphs)-1])
	return title, b.String()
}
