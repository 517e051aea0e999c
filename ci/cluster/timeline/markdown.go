package timeline

import (
	"fmt"
	"strings"
)

// Markdown is the time line for a job's summary: what happened, a table, the critical path, and after a failure its cause
// and the command that resumes.
func (t Timeline) Markdown() ([]byte, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("## %s\n", escaped(t.Title()))
	if f := t.Failure; f != nil {
		line("### %s\n", escaped(f.Where()))
		line("%s\n", fenced("text", f.Cause))
		if f.Look != "" {
			line("To look at: %s\n", code(f.Look))
		}
		switch {
		case f.NextCommand() != "":
			line("%s:\n\n%s\n", escaped(f.NextWords()), fenced("sh", f.NextCommand()))
		case f.Next != "":
			line("%s\n", escaped(f.Next))
		}
	}
	if len(t.Layers) > 0 {
		t.table(line)
	}
	if len(t.Critical) > 0 {
		line("### Critical path\n")
		for i, link := range t.Critical {
			text := fmt.Sprintf("%d. **%s** %s", i+1, escaped(link.Layer), link.Took)
			if link.Longest != "" {
				text += fmt.Sprintf(", of which %s for %s", link.Gate, escaped(link.Longest))
			}
			line("%s", text)
		}
		line("\nBetween and around these layers: %s. Total: %s.", t.unaccounted(), t.Total)
	}
	return []byte(b.String()), nil
}

func (t Timeline) table(line func(string, ...any)) {
	line("| layer, gate | from | took | result | critical |")
	line("|---|--:|--:|---|---|")
	for _, layer := range t.Layers {
		critical := ""
		if layer.Critical {
			critical = "◆ yes"
		}
		line("| **%s** | %s | %s | %s | %s |", cell(layer.Name), clock(layer.Start), layer.Took, cell(layer.Result), critical)
		for _, gate := range layer.Gates {
			line("| &emsp;%s | %s | %s | %s | |", cell(gate.Name), clock(gate.Start), gate.Took, cell(gate.Result))
		}
	}
	line("")
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "#", `\#`, "~", `\~`,
)

func escaped(text string) string { return markdownEscapes.Replace(text) }

func cell(text string) string { return escaped(strings.Join(strings.Fields(text), " ")) }

// fenced is a block of code whose fence is longer than any row of backticks in the text.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

func code(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}
