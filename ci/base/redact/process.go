package redact

import "io"

// process is the redactor of this process. There is one, since where a process writes to is one too: a secret learned deep
// in one package must not get out by a writer that was never handed a redactor.
var process Redactor

// Add makes values known to this process: who learns a secret calls it before doing anything else with it.
func Add(values ...string) { process.Add(values...) }

// Text gives the text without the secrets that this process knows; who shows or keeps a text calls it first.
func Text(text string) string { return process.Redact(text) }

// Writer passes on what is written without the secrets that this process knows at that time. Each write is taken by itself:
// a secret that is written in two parts stays.
func Writer(to io.Writer) io.Writer { return writer{to} }

type writer struct{ to io.Writer }

func (w writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
