package report

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/publish/imagepush"
)

// Rebuild is a further image of a commit that was published before.
type Rebuild struct {
	// Number is 2 for the tag that ends in -r2.
	Number int `json:"number"`
	// Was is the tag before it, and Differences what of its inputs is another one now, a phrase each; both are empty where the
	// rebuild was published already.
	Was         string   `json:"was,omitempty"`
	Differences []string `json:"differences,omitempty"`
}

// RebuildOf is what a push found; nil where the image is the first one of its commit, or no other was asked for.
func RebuildOf(pushed imagepush.Rebuild) *Rebuild {
	if pushed.Number < 2 {
		return nil
	}
	rebuild := &Rebuild{Number: pushed.Number, Differences: pushed.Differences}
	if len(pushed.Differences) > 0 {
		rebuild.Was = pushed.Was
	}
	return rebuild
}

// words are one line, whatever a registry holds.
func (r *Rebuild) words() string {
	text := fmt.Sprintf("number %d of this commit", r.Number)
	if r.Was == "" {
		return text
	}
	return text + ": since " + r.Was + ", " + strings.Join(strings.Fields(strings.Join(r.Differences, "; ")), " ")
}

// Sentence says why there is a rebuild, for a commit message; nothing where there is none.
func (r *Rebuild) Sentence() string {
	if r == nil {
		return ""
	}
	return "Rebuild " + r.words() + "."
}
