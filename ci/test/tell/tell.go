// Package tell is how a test says to `make drill` what was done to castle, what castle said to that, and which call got over it. Each is
// one line of the test's log.
package tell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Kind is what a line tells of.
type Kind string

// The kinds.
const (
	Injected Kind = "injected" // a fault
	Seen     Kind = "seen"     // what a call that ended with an error said, or another thing that was observed
	Ended    Kind = "ended"    // a call that ended well
)

// Line is what a test told.
type Line struct {
	Kind Kind          `json:"kind"`
	Text string        `json:"text"`           // one line; of Ended the verb
	Took time.Duration `json:"took,omitempty"` // of the call, in nanoseconds; 0 where it was none
}

// mark begins a line in a log.
const mark = "drill: "

// longest keeps a line whole: `go test -json` cuts those of four kilobytes.
const longest = 300

// folders are a test's own, which are others each time.
var folders = regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(os.TempDir())) + `/\S*/`)

// Fault tells of a fault that begins now.
func Fault(t testing.TB, format string, args ...any) {
	t.Helper()
	tell(t, Line{Kind: Injected, Text: fmt.Sprintf(format, args...)})
}

// Observation tells of what was seen; took is how long the call had taken that showed it, or 0.
func Observation(t testing.TB, took time.Duration, format string, args ...any) {
	t.Helper()
	tell(t, Line{Kind: Seen, Text: fmt.Sprintf(format, args...), Took: took})
}

// Success tells of a call that ended well.
func Success(t testing.TB, verb string, took time.Duration) {
	t.Helper()
	tell(t, Line{Kind: Ended, Text: verb, Took: took})
}

func tell(t testing.TB, line Line) {
	t.Helper()
	line.Text = folders.ReplaceAllString(strings.Join(strings.Fields(line.Text), " "), "…/")
	if utf8.RuneCountInString(line.Text) > longest {
		line.Text = string([]rune(line.Text)[:longest-1]) + "…"
	}
	data, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(mark + string(data))
}

// Read finds what a line of a log tells.
func Read(text string) (line Line, is bool) {
	_, data, has := strings.Cut(text, ": "+mark)
	if !has || json.Unmarshal([]byte(data), &line) != nil {
		return Line{}, false
	}
	return line, true
}
