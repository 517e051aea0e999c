package secrets

import (
	"fmt"
	"strings"
)

// IncompleteError names all that is missing or malformed at once.
type IncompleteError struct {
	Cluster  string
	Problems []Problem
	NotAsked string // place in Infisical that could not be asked, since the client is among the problems; else empty
}

// Error is a heading and a line for each problem.
func (e *IncompleteError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "cluster %s lacks secrets:", e.Cluster)
	for _, problem := range e.Problems {
		text.WriteString("\n  " + problem.Text)
	}
	if e.NotAsked != "" {
		fmt.Fprintf(&text, "\n  what stands in %s is not known before %s and %s are there", e.NotAsked, InfisicalClientID, InfisicalClientSecret)
	}
	return text.String()
}
