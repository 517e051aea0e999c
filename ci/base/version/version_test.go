package version

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The changelog's newest release and the version must tell the same story.
func TestTheVersionIsTheChangelogsNewestOrComesAfterIt(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-dev)?$`).MatchString(Castle) {
		t.Fatalf("%q is no version", Castle)
	}
	released := regexp.MustCompile(`(?m)^## \[?(\d+\.\d+\.\d+)`).FindStringSubmatch(string(text))
	if released == nil {
		if !strings.HasSuffix(Castle, "-dev") {
			t.Errorf("the changelog has no release, and the version is %s", Castle)
		}
		return
	}
	if Castle != released[1] && !strings.HasSuffix(Castle, "-dev") {
		t.Errorf("the changelog's newest release is %s, and the version is %s", released[1], Castle)
	}
}
