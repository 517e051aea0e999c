package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/base/git"
)

// File modes of Git's tree objects.
const (
	modeExecutable = "100755"
	modeSymlink    = "120000"
	modeSubmodule  = "160000"
)

// entry is one object of a commit.
type entry struct {
	mode       string
	kind       string // blob, tree or commit (a submodule)
	object     string
	size       int64  // of a blob, in bytes
	path       string // relative to the exported folder
	source     string // relative to the top of the published repository
	repository repository
	pointer    pointer // what the blob is instead of the content
	content    string  // the file that holds the pointer's content; empty where the blob is the content
}

// listTree lists the given paths of a tree-ish, or all of it. Raw objects are what it is about: attributes such as
// export-ignore, ident or eol, which change what a checkout or an archive gets, have no say.
func (r repository) listTree(ctx context.Context, recursive bool, treeish string, paths ...string) ([]entry, error) {
	args := []string{"ls-tree", "-z", "--long", "--full-tree"}
	if recursive {
		args = append(args, "-r")
	}
	out, err := r.git.Run(ctx, append(append(args, treeish, "--"), paths...)...)
	if err != nil {
		return nil, explainMissing(err)
	}
	var entries []entry
	for _, line := range splitNUL(out) {
		described, name, _ := strings.Cut(line, "\t")
		parts := strings.Fields(described)
		if len(parts) != 4 {
			return nil, fmt.Errorf("git ls-tree says %q, which is not its format", line)
		}
		e := entry{mode: parts[0], kind: parts[1], object: parts[2], path: name, repository: r}
		if e.kind == "blob" {
			if e.size, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", name, errPartialClone)
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

var errPartialClone = errors.New("the clone does not hold this object: it is partial or damaged, so clone anew without --filter")

// explainMissing recognises that git asked the remote of a partial clone for an object, in vain.
func explainMissing(err error) error {
	var failed *git.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "promisor remote") {
		return fmt.Errorf("%w: %w", errPartialClone, err)
	}
	return err
}

// contentOf lists the files below a tree, submodules included at the commits that are recorded for them. within is the
// tree's path in this repository, source its path in the published one. With a *RefusedError come the entries that could be
// listed.
func (r repository) contentOf(ctx context.Context, treeish, within, source string) ([]entry, error) {
	listed, err := r.listTree(ctx, true, treeish)
	if err != nil {
		return nil, err
	}
	var entries []entry
	var problems []Problem
	for _, e := range listed {
		e.source = path.Join(source, e.path)
		if e.kind != "commit" {
			entries = append(entries, e)
			continue
		}
		dir := filepath.Join(r.dir, filepath.FromSlash(path.Join(within, e.path)))
		inside, err := submoduleContent(ctx, e, dir)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			problems = append(problems, refused.Problems...)
		} else if err != nil {
			return nil, err
		}
		for _, inner := range inside {
			inner.path = path.Join(e.path, inner.path)
			entries = append(entries, inner)
		}
	}
	return entries, refuse(problems...)
}

// submoduleContent lists the files of the submodule that is checked out at dir.
func submoduleContent(ctx context.Context, recorded entry, dir string) ([]entry, error) {
	if err := checkSource(dir); err != nil {
		return nil, refuse(missingSubmodule(recorded.source))
	}
	submodule, err := openRepository(ctx, dir)
	if err != nil {
		return nil, err
	}
	if _, err := submodule.git.Run(ctx, "cat-file", "-e", recorded.object+"^{commit}"); err != nil {
		return nil, refuse(Problem{
			Path: recorded.source,
			What: "the submodule lacks the recorded commit " + recorded.object,
			Fix:  "run " + updateSubmodules,
		})
	}
	return submodule.contentOf(ctx, recorded.object, "", recorded.source)
}

// batch is how many bytes of content are asked of one git process, unless one file is larger.
const batch = 8 << 20

// batches cuts entries into runs of one repository.
func batches(entries []entry) [][]entry {
	var runs [][]entry
	for len(entries) > 0 {
		count, size := 1, entries[0].size
		for count < len(entries) && size+entries[count].size <= batch && entries[count].repository.dir == entries[0].repository.dir {
			size += entries[count].size
			count++
		}
		runs = append(runs, entries[:count])
		entries = entries[count:]
	}
	return runs
}

// readBlobs hands the content of each blob to use, in the order given. The content is overwritten when use returns.
func readBlobs(ctx context.Context, entries []entry, use func(entry, []byte) error) error {
	for _, run := range batches(entries) {
		if err := readBatch(ctx, run, use); err != nil {
			return err
		}
	}
	return nil
}

// readBatch is readBlobs for one repository, with one git process. Each answer is "<object> blob <size>", a line feed, the
// content and another line feed. Source: git-cat-file(1), batch output.
func readBatch(ctx context.Context, entries []entry, use func(entry, []byte) error) error {
	var query strings.Builder
	for _, e := range entries {
		query.WriteString(e.object + "\n")
	}
	err := entries[0].repository.git.Pipe(ctx, strings.NewReader(query.String()), func(stdout io.Reader) error {
		answers := bufio.NewReaderSize(stdout, 64<<10)
		var content []byte
		for _, e := range entries {
			header, err := answers.ReadString('\n')
			if err == nil && header == fmt.Sprintf("%s blob %d\n", e.object, e.size) {
				content = slices.Grow(content[:0], int(e.size)+1)[:e.size+1] // with the line feed
				_, err = io.ReadFull(answers, content)
			} else if err == nil {
				err = errPartialClone
			}
			if err != nil {
				return fmt.Errorf("%s: git answers %q: %w", e.source, header, err)
			}
			if err := use(e, content[:e.size]); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch", "--buffer")
	return explainMissing(err)
}
