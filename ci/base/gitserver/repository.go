package gitserver

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/git"
)

// InitBare makes an empty bare repository in dir, which it creates, whose HEAD is the branch. A repository that is there
// already keeps its content.
func InitBare(ctx context.Context, dir, branch string) error {
	if err := git.CheckBranch(branch); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	repository := git.Runner{Dir: dir}
	if _, err := repository.Run(ctx, "init", "--quiet", "--bare", "--template=", "--initial-branch="+branch); err != nil {
		return err
	}
	for _, setting := range []string{
		// As the hosting services allow it: partial clones, and single objects by their name.
		"uploadpack.allowFilter=true",
		"uploadpack.allowAnySHA1InWant=true",
		// No process is left behind that still writes when the folder is removed.
		"receive.autogc=false",
	} {
		key, value, _ := strings.Cut(setting, "=")
		if _, err := repository.Run(ctx, "config", key, value); err != nil {
			return err
		}
	}
	return nil
}

// Commit is what Seed puts on a branch.
type Commit struct {
	// Message is the whole commit message; empty means "Seed".
	Message string
	// Author is also the committer, as "Name <address>"; empty means a name of this package.
	Author string
	// When is the time of both; zero means now.
	When time.Time
	// Files are written with their own bytes and executable bits over what the branch holds; nil means none.
	Files fs.FS
	// Remove names files that the branch shall hold no longer.
	Remove []string
}

// Seed commits onto a branch of a bare repository, which it starts where it is not there yet, without a working tree and
// in one pass, however many files there are. It returns the commit's name.
func Seed(ctx context.Context, dir, branch string, commit Commit) (sha string, err error) {
	if err := git.CheckBranch(branch); err != nil {
		return "", err
	}
	if commit.Message == "" {
		commit.Message = "Seed"
	}
	if commit.Author == "" {
		commit.Author = "Git server <gitserver@localhost>"
	}
	if commit.When.IsZero() {
		commit.When = time.Now()
	}
	repository := git.Runner{Dir: dir}
	ref := "refs/heads/" + branch
	parent, err := repository.Run(ctx, "for-each-ref", "--format=%(objectname)", ref)
	if err != nil {
		return "", err
	}

	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit %s\ncommitter %s %d +0000\n", ref, commit.Author, commit.When.Unix())
	writeData(&stream, []byte(commit.Message))
	if parent = strings.TrimSpace(parent); parent != "" {
		fmt.Fprintf(&stream, "from %s\n", parent)
	}
	for _, name := range commit.Remove {
		fmt.Fprintf(&stream, "D %s\n", quote(name))
	}
	if commit.Files != nil {
		if err := writeFiles(&stream, commit.Files); err != nil {
			return "", err
		}
	}
	stream.WriteString("\n")
	if _, err := repository.RunInput(ctx, &stream, "fast-import", "--quiet", "--date-format=raw-permissive"); err != nil {
		return "", err
	}
	sha, err = repository.Run(ctx, "rev-parse", "--verify", ref)
	return strings.TrimSpace(sha), err
}

// writeFiles adds every regular file to a fast-import stream.
func writeFiles(stream *bytes.Buffer, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		mode := "100644"
		if info.Mode()&0o111 != 0 {
			mode = "100755"
		}
		fmt.Fprintf(stream, "M %s inline %s\n", mode, quote(name))
		writeData(stream, content)
		return nil
	})
}

// writeData writes bytes with their length before them, as fast-import takes them.
func writeData(stream *bytes.Buffer, content []byte) {
	fmt.Fprintf(stream, "data %d\n", len(content))
	stream.Write(content)
	stream.WriteByte('\n')
}

// quote is a path as fast-import takes it whatever it contains.
func quote(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}
