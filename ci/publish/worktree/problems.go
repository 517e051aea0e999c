package worktree

import (
	"fmt"
	"strings"
)

// listed is how many problems an error spells out before it only counts.
const listed = 50

// Problem is one reason why a tree cannot be published.
type Problem struct {
	Path string `json:"path,omitempty"` // relative to the top of the tree; empty for what concerns the whole tree
	What string `json:"what"`
	Fix  string `json:"fix"`
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.What + ": " + p.Fix
	}
	return p.Path + ": " + p.What + "; " + p.Fix
}

// RefusedError says everything that keeps a tree from being published. Only a person can mend it: trying again is no use.
type RefusedError struct {
	Problems []Problem
}

// Error has one line for each problem, with its fix.
func (e *RefusedError) Error() string {
	var text strings.Builder
	text.WriteString("the working tree cannot be published:")
	for i, problem := range e.Problems {
		if i == listed {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Problems)-listed)
			break
		}
		text.WriteString("\n  " + problem.String())
	}
	return text.String()
}

func refuse(problems ...Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &RefusedError{Problems: problems}
}
