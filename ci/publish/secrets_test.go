package publish_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/rollback"
)

// canaryIn returns the form in which a canary stands in a text, or "".
func canaryIn(text string) string {
	for _, secret := range append(linesOfKey(), publishtest.RegistryPassword, publishtest.GitToken, publishtest.CosignPassword) {
		forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(secret, "&", `\u0026`)}
		for _, user := range []string{"robot", "git", "x-access-token", "castle"} {
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(user+":"+secret)))
		}
		for _, form := range forms {
			if strings.Contains(text, form) {
				return form
			}
		}
	}
	return ""
}

// linesOfKey are those of the private key that are not the same in each.
func linesOfKey() (lines []string) {
	for line := range strings.Lines(publishtest.Keys().Private) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}

func mustHoldNoCanary(t *testing.T, what, text string) {
	t.Helper()
	if form := canaryIn(text); form != "" {
		t.Errorf("%s holds %s:\n%s", what, form, text)
	}
}

func TestCredentialsAreInNoErrorNoReportAndNoFile(t *testing.T) {
	t.Parallel()
	w, _, newer := publishtest.Published(t)
	var mu sync.Mutex
	sent := map[string]bool{}
	// A registry that gives back what it was given, once it has asked for it. An answer to HEAD would have no text.
	echo := func(rw http.ResponseWriter, r *http.Request) bool {
		given := r.Header.Get("Authorization")
		if given == "" || r.Method == http.MethodHead {
			return false
		}
		mu.Lock()
		sent[canaryIn(given)] = true
		mu.Unlock()
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(rw, `{"errors": [{"code": "DENIED", "message": "who is %s, %s?"}]}`, given, publishtest.RegistryPassword)
		return true
	}

	rolledBack, err := rollback.Run(t.Context(), w.RollbackTo("1a2b3c4"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json", "markdown"} {
		for _, r := range []rendering.Result{newer, rolledBack, w.History(t)} {
			text, err := rendering.As(format, r)
			if err != nil {
				t.Error(err)
			}
			mustHoldNoCanary(t, "a report as "+format, text)
		}
	}

	hook := filepath.Join(w.Bare(), "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'error: who is "+publishtest.GitToken+"' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, refusedByGit := publish.Run(t.Context(), w.Options(t, "9a8b7c6", publishtest.NewImage(t)))
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	w.SetAnswer(echo)
	_, refusedByRegistry := publish.Run(t.Context(), w.Options(t, "2b3c4d5", publishtest.NewImage(t)))
	_, noRollback := rollback.Run(t.Context(), w.RollbackTo("badc0de"))
	for what, err := range map[string]error{"a refused commit": refusedByGit, "a refused image": refusedByRegistry, "a refused rollback": noRollback} {
		if err == nil {
			t.Errorf("%s gave no error", what)
			continue
		}
		mustHoldNoCanary(t, what, err.Error())
	}
	publishtest.MustSay(t, refusedByGit, "who is")
	publishtest.MustSay(t, refusedByRegistry, "who is")
	if len(sent) == 0 || sent[""] {
		t.Errorf("the registry saw %v: it was given nothing, or the search does not know its form", sent)
	}

	for _, dir := range []string{w.RegistryDir, w.GitDir} {
		if searched := searchFolder(t, dir); searched == 0 {
			t.Errorf("%s holds no file", dir)
		}
	}
	mustHoldNoCanary(t, "the history", w.Git(t, "log", "--all", "-p", "--format=raw"))
}

// searchFolder reports every file that holds a canary and returns how many files there were. Git's own objects are
// compressed; the log above reads them.
func searchFolder(t *testing.T, dir string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		if form := canaryIn(string(content)); form != "" {
			t.Errorf("%s holds %s", name, form)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return files
}
