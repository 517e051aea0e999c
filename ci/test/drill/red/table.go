package main

import (
	"fmt"
	"os"
	"strings"

	"tazlab.net/castle/ci/test/drill/marked"
)

// head is the beginning of a spoil's row, by which it is known.
func (s spoil) head() string { return fmt.Sprintf("| `%s` | %s | ", s.Story, s.Without) }

func (s shown) row() string { return fmt.Sprintf("%s%s | %s |\n", s.head(), s.Test, s.outcome) }

func rows(seen []shown) []string {
	all := make([]string, len(seen))
	for i, s := range seen {
		all[i] = s.row()
	}
	return all
}

// markdown counts the rows and shows them.
func markdown(rows []string) string {
	red := 0
	for _, row := range rows {
		if strings.HasSuffix(row, "| "+wasRed+" |\n") {
			red++
		}
	}
	return fmt.Sprintf("**%d of %d were red**.\n\n| story | taken out | test | outcome |\n|---|---|---|---|\n%s", red, len(rows), strings.Join(rows, ""))
}

// merged are the rows in the order of the spoils: those of this run, and in a table that is there those of spoils that this run left out.
func merged(table string, all []spoil, seen []shown) (merged []string) {
	of := map[string]string{} // rows by their heads
	for line := range strings.Lines(table) {
		for _, s := range all {
			if strings.HasPrefix(line, s.head()) {
				of[s.head()] = line
			}
		}
	}
	for _, s := range seen {
		of[s.head()] = s.row()
	}
	for _, s := range all {
		if row, is := of[s.head()]; is {
			merged = append(merged, row)
		}
	}
	return merged
}

// keep writes this run's rows into a page.
func keep(file string, all []spoil, seen []shown, when string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	table, err := marked.Between(string(page), "red")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	together := merged(table, all, seen)
	if len(together) > len(seen) {
		when += ", in several runs"
	}
	return marked.Write(file, "red", when+": "+markdown(together))
}
