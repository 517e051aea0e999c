package report

// warningRows are the report's lines about what in the site was found to be worth mending. Each warning is a sentence
// with its fix; nothing of the publish depends on it.
func warningRows(warnings []string) []row {
	rows := make([]row, len(warnings))
	for i, warning := range warnings {
		rows[i] = row{"warning", warning}
	}
	return rows
}
