package git

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// forbiddenInBranch are the sequences that git-check-ref-format refuses, and a leading dash, which would be an option.
var forbiddenInBranch = regexp.MustCompile(`^-|^/|/$|//|/\.|^\.|\.$|\.\.|\.lock(/|$)|@\{|[\x00-\x20\x7f~^:?*\[\\]`)

// CheckBranch reports a name that no branch can have.
func CheckBranch(name string) error {
	switch {
	case name == "":
		return errors.New("the branch has no name")
	case strings.HasPrefix(name, "refs/"):
		return fmt.Errorf("%q is a full ref name; name the branch alone, as in %q", name, strings.TrimPrefix(name, "refs/heads/"))
	case forbiddenInBranch.MatchString(name):
		return fmt.Errorf("%q is no valid branch name", name)
	}
	return nil
}
