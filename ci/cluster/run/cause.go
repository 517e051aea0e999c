package run

import (
	"regexp"
	"slices"
	"strings"
)

// Cause collects the messages that tell why a tool failed: OpenTofu's errors and castle's own.
type Cause struct {
	errors []string
	last   []string
}

// errorText finds an error in a message: OpenTofu's "Error: …", or "castle: …" of a hook.
var errorText = regexp.MustCompile(`(?s)(?:^|\n)(?:Error: |castle: )(.+)`)

// Add takes a message.
func (c *Cause) Add(message string) {
	if found := errorText.FindStringSubmatch(message); found != nil {
		text := strings.TrimSpace(found[1])
		if !slices.Contains(c.errors, text) {
			c.errors = append(c.errors, text)
		}
		return
	}
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if c.last = append(c.last, line); len(c.last) > 3 {
			c.last = c.last[1:]
		}
	}
}

// Text is the errors, each once; where a tool named none, its last lines.
func (c *Cause) Text() string {
	if len(c.errors) == 0 {
		return strings.Join(c.last, "\n")
	}
	return strings.Join(c.errors, "\n")
}
