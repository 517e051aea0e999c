// Package marked replaces the part of a page that a program writes, between two comments of Markdown that a reader does not see.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Between is what stands between <!-- NAME --> and <!-- /NAME -->, each of which has to be there once.
func Between(page, name string) (string, error) {
	from, to, err := marks(page, name)
	if err != nil {
		return "", err
	}
	return page[from:to], nil
}

// Replace puts content there. It ends with a line break.
func Replace(page, name, content string) (string, error) {
	from, to, err := marks(page, name)
	if err != nil {
		return "", err
	}
	return page[:from] + content + page[to:], nil
}

// marks are the places after the first mark and before the second.
func marks(page, name string) (from, to int, err error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	from, to = strings.Index(page, begin), strings.Index(page, end)
	if strings.Count(page, begin) != 1 || strings.Count(page, end) != 1 || to < from {
		return 0, 0, fmt.Errorf("the page has not once %q and then %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return from + len(begin), to, nil
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
