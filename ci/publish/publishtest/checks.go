package publishtest

import (
	"slices"
	"strings"
	"testing"
)

// MustStay runs an action and makes sure that no push was even begun and that the branch is where it was.
func (w *World) MustStay(t *testing.T, action func()) {
	t.Helper()
	before := w.Git(t, "for-each-ref")
	w.TakeEvents()
	action()
	if after := w.Git(t, "for-each-ref"); after != before {
		t.Errorf("the GitOps repository changed from\n%s\nto\n%s", before, after)
	}
	for _, event := range w.TakeEvents() {
		if IsGitPush(event) {
			t.Errorf("a push was begun: %s", event)
		}
	}
}

// IsGitPush says whether an event belongs to a push.
func IsGitPush(event string) bool {
	return strings.HasPrefix(event, "git POST ") && strings.Contains(event, "git-receive-pack")
}

// IsRegistryWrite says whether an event may change the registry.
func IsRegistryWrite(event string) bool {
	return strings.HasPrefix(event, "registry ") && !strings.HasPrefix(event, "registry GET") && !strings.HasPrefix(event, "registry HEAD")
}

// MustHaveNone makes sure that no event is of a kind.
func MustHaveNone(t *testing.T, events []string, is func(string) bool) {
	t.Helper()
	if i := slices.IndexFunc(events, is); i >= 0 {
		t.Errorf("there was %q in\n%s", events[i], strings.Join(events, "\n"))
	}
}

// MustSay makes sure that an error is there and names what a person needs.
func MustSay(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in: %v", word, err)
		}
	}
}
