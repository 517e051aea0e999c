package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"dagger/castle/internal/dagger"
)

// failure is a command in a container that failed.
type failure struct {
	said   string // castle's own message, which names the thing and the fix
	report string // what the command printed as its result
	code   int    // its exit code
}

func (f *failure) Error() string { return f.said }

// plain turns the failure of a command in a container into what the command
// said: "exit code 1" around castle's own messages helps nobody.
func plain(err error) error {
	var failed *dagger.ExecError
	if !errors.As(err, &failed) {
		return err
	}
	said := strings.TrimSpace(failed.Stderr)
	if said == "" {
		said = strings.TrimSpace(failed.Stdout)
	}
	if said == "" {
		return err
	}
	// What stands before castle's own message are the steps that led there; they
	// were shown while it ran.
	if i := strings.LastIndex("\n"+said, "\ncastle: "); i >= 0 {
		said = said[i:]
	}
	return &failure{said: strings.TrimPrefix(said, "castle: "), report: strings.TrimSpace(failed.Stdout), code: failed.ExitCode}
}

// ended is what a verb defers: a call that failed ends with the exit code of the
// command that did, and has a report in the format that was asked for. The
// dagger command prints nothing to its standard output then; it writes the
// report to its error output, between the lines "Stdout:" and the end.
//
// Source: engine v0.19.10, cmd/dagger/functions.go, and the Go SDK's
// convertError, which passes on a gqlerror's extensions and no other's.
func ended(verb string, format Format, err *error) {
	if *err == nil {
		return
	}
	message, code, report := (*err).Error(), 1, ""
	var failed *failure
	if errors.As(*err, &failed) {
		code, report = failed.code, failed.report
	}
	switch {
	case format == FormatText:
		report = "" // the message says all, or the steps that were shown
	case report == "":
		report = failureReport(verb, format, message, code)
	case report == message:
		message = verb + " found what is to be mended; its report says what"
	}
	*err = &gqlerror.Error{Message: message, Extensions: map[string]any{
		"_type": "EXEC_ERROR", "cmd": []string{verb}, "exitCode": code, "stdout": report, "stderr": "",
	}}
}

// failureReport is that of a call that failed before any command could write one.
func failureReport(verb string, format Format, message string, code int) string {
	if format == FormatMarkdown {
		fence := "```"
		for strings.Contains(message, fence) {
			fence += "`"
		}
		return fmt.Sprintf("## %s failed\n\n%stext\n%s\n%s", verb, fence, message, fence)
	}
	text, _ := json.MarshalIndent(struct { // texts and numbers have no error
		Verb     string `json:"verb"`
		Failed   bool   `json:"failed"`
		Error    string `json:"error"`
		ExitCode int    `json:"exitCode"`
	}{verb, true, message, code}, "", "  ")
	return string(text)
}
