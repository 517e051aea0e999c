// Package marked replaces the part of a page that a program writes, between two comments of Markdown that a reader does not see.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Replace puts content between <!-- NAME --> and <!-- /NAME -->, each of which has to be there once. The content ends with a line break.
func Replace(page, name, content string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	from, to := strings.Index(page, begin), strings.Index(page, end)
	if strings.Count(page, begin) != 1 || strings.Count(page, end) != 1 || to < from {
		return "", fmt.Errorf("the page has not once %q and then %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return page[:from+len(begin)] + content + page[to:], nil
}

// Write is Replace in a file.
func Write(file, name, content string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	written, err := Replace(string(old), name, content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(written), 0o644)
}
