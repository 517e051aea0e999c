package sitegen

import (
	"bytes"
	"fmt"
	"os"
)

var frontMatterEnd = []byte("\n---\n")

// Touch changes one comma in the text of page n, counted from 1, of the site in dir: the first that is left becomes a
// semicolon, so each call changes the page again. Title, date and the number of words stay, and so does the file's length.
//
// It fails if there is no such page, or if its text has no comma left.
func Touch(dir string, page int) error {
	if err := TouchFile(pagePath(dir, page)); err != nil {
		return fmt.Errorf("page %d: %w", page, err)
	}
	return nil
}

// TouchFile does the same to a file with a text of Page.
func TouchFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	_, text, ok := bytes.Cut(content, frontMatterEnd)
	if !ok {
		return fmt.Errorf("%s has no front matter: was the site made by Generate?", path)
	}
	comma := bytes.IndexByte(text, ',')
	if comma < 0 {
		return fmt.Errorf("%s has no comma left: generate the site anew", path)
	}
	text[comma] = ';'
	return writeFile(path, content)
}
