package worktree

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const updateSubmodules = "git submodule update --init --recursive"

// changes lists what differs from HEAD in the tree and, recursively, in its submodules. prefix is the path of the repository
// inside the published one.
func (r repository) changes(ctx context.Context, prefix string) ([]Problem, error) {
	// Changes inside submodules are asked of each submodule below, so that their files are listed too.
	status, err := r.git.Run(ctx, "status", "--porcelain=v2", "-z", "--find-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
	if err != nil {
		return nil, err
	}
	changed, err := parseStatus(status)
	if err != nil {
		return nil, err
	}
	changed, err = r.withoutFiltered(ctx, changed)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, change := range changed {
		problems = append(problems, change.problem(prefix))
	}
	inside, err := r.submoduleChanges(ctx, prefix, changed)
	return append(problems, inside...), err
}

// submoduleChanges looks into the submodules that the commit records.
func (r repository) submoduleChanges(ctx context.Context, prefix string, changed []change) ([]Problem, error) {
	reported := map[string]bool{}
	for _, change := range changed {
		reported[change.path] = change.missingSubmodule()
	}
	recorded, err := r.submodules(ctx)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, name := range recorded {
		if reported[name] {
			continue
		}
		dir := filepath.Join(r.dir, filepath.FromSlash(name))
		full := path.Join(prefix, name)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			problems = append(problems, missingSubmodule(full))
			continue
		}
		if err := checkSource(dir); err != nil {
			problems = append(problems, Problem{Path: full, What: "its repository is not part of the source", Fix: "run " + updateSubmodules})
			continue
		}
		submodule, err := openRepository(ctx, dir)
		if err != nil {
			return nil, err
		}
		inside, err := submodule.changes(ctx, full)
		if err != nil {
			return nil, fmt.Errorf("submodule %s: %w", full, err)
		}
		problems = append(problems, inside...)
	}
	return problems, nil
}

// submodules are the paths that HEAD records a submodule's commit for.
func (r repository) submodules(ctx context.Context) ([]string, error) {
	listed, err := r.git.Run(ctx, "ls-tree", "-z", "-r", "--full-tree", "HEAD")
	if err != nil {
		return nil, explainMissing(err)
	}
	var names []string
	for _, line := range splitNUL(listed) {
		if described, name, _ := strings.Cut(line, "\t"); strings.HasPrefix(described, modeSubmodule) {
			names = append(names, name)
		}
	}
	return names, nil
}

func missingSubmodule(path string) Problem {
	return Problem{Path: path, What: "the submodule is missing", Fix: "run " + updateSubmodules + ", or set submodules: recursive in actions/checkout"}
}

// change is one entry of git status.
type change struct {
	kind      byte   // '1' changed, '2' renamed or copied, 'u' conflicting, '?' untracked
	index     byte   // M, T, A, D, R, C, or '.' for none: HEAD against what is staged
	tree      byte   // the same: what is staged against the file
	submodule string // "N...", or "S" and three letters
	path      string
	from      string // old path of a rename or copy
	filter    string // content filter the file is stored through
}

// fields is how many fields of an entry, by its kind, stand before the path. Source: git-status(1), porcelain format v2.
var fields = map[byte]int{'1': 8, '2': 9, 'u': 10, '?': 1, '!': 1}

func parseStatus(status string) ([]change, error) {
	var changes []change
	entries := splitNUL(status)
	for i := 0; i < len(entries); i++ {
		entry := entries[i]
		if entry[0] == '#' {
			continue
		}
		parts := strings.SplitN(entry, " ", fields[entry[0]]+1)
		if len(parts) < 2 || len(parts) != fields[entry[0]]+1 {
			return nil, fmt.Errorf("git status says %q, which is not its format v2", entry)
		}
		parsed := change{kind: entry[0], index: '.', tree: '.', path: parts[len(parts)-1]}
		if len(parts) > 3 {
			parsed.index, parsed.tree, parsed.submodule = parts[1][0], parts[1][1], parts[2]
		}
		if parsed.kind == '2' {
			i++
			if i == len(entries) {
				return nil, fmt.Errorf("git status names no old path of %s", parsed.path)
			}
			parsed.from = entries[i]
		}
		if parsed.kind != '!' {
			changes = append(changes, parsed)
		}
	}
	return changes, nil
}

func (c change) isSubmodule() bool { return strings.HasPrefix(c.submodule, "S") }

func (c change) missingSubmodule() bool { return c.isSubmodule() && c.tree == 'D' }

var (
	stagedNames = map[byte]string{'M': "staged", 'T': "staged with another type", 'A': "added", 'D': "deletion staged", 'R': "renamed", 'C': "copied"}
	treeNames   = map[byte]string{'M': "modified", 'T': "replaced by another type of file", 'A': "added", 'D': "deleted", 'R': "renamed", 'C': "copied"}
)

// problem words the change for a person.
func (c change) problem(prefix string) Problem {
	problem := Problem{Path: path.Join(prefix, c.path)}
	switch {
	case c.kind == '?':
		if strings.HasSuffix(c.path, "/") {
			problem.Path += "/"
		}
		problem.What = "untracked"
		problem.Fix = "commit it, remove it, or name it in .gitignore (a global ignore file does not count here)"
		return problem
	case c.kind == 'u':
		problem.What = "in conflict"
		problem.Fix = "resolve and commit it"
		return problem
	case c.missingSubmodule():
		return missingSubmodule(problem.Path)
	case c.isSubmodule():
		problem.What = "the submodule is at another commit than the recorded one"
		problem.Fix = fmt.Sprintf("commit the move (git add %s, git commit) or go back (git submodule update %s)", c.path, c.path)
		return problem
	}
	var what []string
	if name, ok := stagedNames[c.index]; ok {
		what = append(what, name)
	}
	if name, ok := treeNames[c.tree]; ok {
		what = append(what, name)
	}
	problem.What = strings.Join(what, ", then ")
	if c.from != "" {
		problem.What += " from " + path.Join(prefix, c.from)
	}
	problem.Fix = "commit or restore it"
	if c.filter != "" {
		problem.What += fmt.Sprintf(", or only stored through the filter %q, which is not available here", c.filter)
		problem.Fix = "commit or restore it; if it is the filter, publish a clone made without it"
	}
	return problem
}

// withoutFiltered drops files that only look modified because the commit holds their Git LFS pointer, and marks those that
// go through any other filter.
func (r repository) withoutFiltered(ctx context.Context, changes []change) ([]change, error) {
	var query strings.Builder
	for _, change := range changes {
		if change.kind == '1' && change.tree == 'M' && !change.isSubmodule() {
			query.WriteString(change.path + "\x00")
		}
	}
	if query.Len() == 0 {
		return changes, nil
	}
	answer, err := r.git.RunInput(ctx, strings.NewReader(query.String()), "check-attr", "--stdin", "-z", "filter")
	if err != nil {
		return nil, err
	}
	filters := map[string]string{}
	for parts := splitNUL(answer); len(parts) >= 3; parts = parts[3:] { // path, "filter", value
		if value := parts[2]; value != "unspecified" && value != "unset" && value != "set" {
			filters[parts[0]] = value
		}
	}
	kept := changes[:0]
	for _, change := range changes {
		change.filter = filters[change.path]
		if change.filter == "lfs" && change.index == '.' {
			same, err := r.matchesPointer(ctx, change.path)
			if err != nil {
				return nil, err
			}
			if same {
				continue
			}
		}
		kept = append(kept, change)
	}
	return kept, nil
}
