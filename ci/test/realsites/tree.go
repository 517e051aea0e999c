package realsites

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/base/git"
)

// tree is a working tree that is being written.
type tree struct {
	ctx context.Context
	dir string
}

// write writes files, by their names with slashes.
func (t *tree) write(files map[string]string) error {
	for name, text := range files {
		if err := writeFile(t.path(name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// copy copies a file or folder, which may be read-only as those of the module cache are, to a place in the tree; folders of
// the names in skip are left out.
func (t *tree) copy(from, to string, skip ...string) error {
	return copytree.Over(from, t.path(to), skip...)
}

// remove removes files and folders.
func (t *tree) remove(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(t.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// files calls visit with the path of every file at or below a place in the tree.
func (t *tree) files(at string, visit func(file string) error) error {
	return filepath.WalkDir(t.path(at), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return visit(file)
	})
}

// removeMatching removes the files at or below a place in the tree whose names match.
func (t *tree) removeMatching(at string, name *regexp.Regexp) error {
	return t.files(at, func(file string) error {
		if !name.MatchString(filepath.Base(file)) {
			return nil
		}
		return os.Remove(file)
	})
}

// edit replaces a text in every file at or below a place in the tree that has it; it is an error when none has.
func (t *tree) edit(at, old, replacement string) error {
	edited := 0
	err := t.files(at, func(file string) error {
		content, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(content, []byte(old)) {
			return err
		}
		edited++
		return os.WriteFile(file, bytes.ReplaceAll(content, []byte(old), []byte(replacement)), 0o644)
	})
	if err == nil && edited == 0 {
		err = fmt.Errorf("no file in %s has %q", at, old)
	}
	return err
}

// submodule makes a folder's content a repository of its own beside the tree, and a submodule in it.
func (t *tree) submodule(from, to string) error {
	origin := t.dir + "-" + path.Base(to)
	theme := &tree{ctx: t.ctx, dir: origin}
	if err := theme.copy(from, "."); err != nil {
		return err
	}
	if err := t.git(origin, "init", "--quiet", "--initial-branch=main"); err != nil {
		return err
	}
	if err := t.commit(origin, "Write the theme"); err != nil {
		return err
	}
	// By a URL, so that its objects come in a pack, as from a server, and not each as a file of its own.
	if err := t.git(t.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+origin, to); err != nil {
		return err
	}
	// Another folder on this machine would be another commit.
	return t.git(t.dir, "config", "--file=.gitmodules", "submodule."+to+".url", "https://example.org/"+path.Base(to)+".git")
}

func (t *tree) commit(dir, subject string) error {
	if err := t.git(dir, "add", "--all", "--force"); err != nil {
		return err
	}
	return t.git(dir, "commit", "--quiet", "--message="+subject)
}

// git runs a command of Git; its commits are by the same author at the same time.
func (t *tree) git(dir string, args ...string) error {
	const when = "2026-01-02T03:04:05Z"
	_, err := git.Runner{Dir: dir, Env: []string{
		"GIT_AUTHOR_NAME=Author", "GIT_AUTHOR_EMAIL=author@example.com", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=Author", "GIT_COMMITTER_EMAIL=author@example.com", "GIT_COMMITTER_DATE=" + when,
	}}.Run(t.ctx, args...)
	return err
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// article is a page of a site that is not in the theme's example: front matter, and a text with what articles have.
func article(title string, tags []string, body string) string {
	return fmt.Sprintf("---\ntitle: %q\ndate: 2025-03-04\ntags: [%s]\n---\n%s\n", title, strings.Join(tags, ", "), body)
}
