package strictyaml

import (
	"fmt"
	"strings"
)

// DidYouMean proposes the known word that is nearest to what was written, or lists all of them after the given words where
// none is near.
func DidYouMean(written string, known []string, otherwise string) string {
	best, distance := "", len(written)/2+1
	for _, word := range known {
		if d := edits(strings.ToLower(written), strings.ToLower(word)); d < distance {
			best, distance = word, d
		}
	}
	if best == "" {
		return otherwise + strings.Join(known, ", ")
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
