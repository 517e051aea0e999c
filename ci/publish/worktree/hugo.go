package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugopaths"
)

// mailmap corrects the names of authors, from the repository's top.
const mailmap = ".mailmap"

// follow reads the site's committed configuration: whether the build reads the history (enableGitInfo), and what the
// site needs outside its folder, which joins the entries.
func (c *committed) follow(ctx context.Context) error {
	files := &commitFiles{ctx: ctx, repository: c.repository, site: c.site(), inSite: c.entries}
	var err error
	if c.outside, err = hugopaths.Find(files, c.site(), c.packages); err != nil {
		return err
	}
	c.commit.GitInfo = c.outside.Config.Bool("enableGitInfo", false)
	if c.commit.GitInfo {
		if names, err := files.Files(mailmap); err != nil {
			return err
		} else if len(names) > 0 && !hugopaths.Within(mailmap, c.site()) {
			c.outside.Paths = append(c.outside.Paths, mailmap)
		}
	}
	for _, problem := range c.outside.Problems {
		c.problems = append(c.problems, Problem(problem))
	}
	for _, missing := range c.outside.Missing {
		if holdsFiles(filepath.Join(c.repository.dir, filepath.FromSlash(missing.Path))) {
			c.problems = append(c.problems, Problem{
				Path: missing.Path,
				What: "is in the working tree and not in the commit, so the site would lack it (" + missing.Said + ")",
				Fix:  "commit it, or take the setting out",
			})
		}
	}
	beside, err := files.below(c.outside.Paths)
	if err != nil {
		return err
	}
	for _, e := range beside {
		if !hugopaths.Within(e.source, c.site()) {
			c.entries = append(c.entries, e)
		}
	}
	if c.outside.Top != "" {
		c.commit.Notes = append(c.commit.Notes,
			fmt.Sprintf("The theme %s is this repository itself, as in a clone in a folder of that name.", c.outside.Top))
	}
	return nil
}

// site is the site's path in the repository.
func (c committed) site() string { return path.Clean(c.subdir) }

// mirrored reports whether the export has the site at its place in the repository.
func (c committed) mirrored() bool { return c.commit.GitInfo || len(c.outside.Paths) > 0 }

// linksInside reports whether a link leads to what is exported. From the site's own folder anything else would be
// missing in the built site. Hugo passes over links, so that one of a folder outside has to stay in the repository
// only.
func (c committed) linksInside(link entry, target string) bool {
	at, ok := linkTarget(link.source, target)
	if !ok || !hugopaths.Within(link.source, c.site()) {
		return ok
	}
	exported := append([]string{c.site()}, c.outside.Paths...)
	return slices.ContainsFunc(exported, func(folder string) bool { return hugopaths.Within(at, folder) })
}

// holdsFiles reports whether there is a file at a path, or below it.
func holdsFiles(name string) bool {
	found := false
	err := filepath.WalkDir(name, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return err == nil && found
}

// commitFiles are the files of a commit for hugopaths. What is outside the site is listed when it is first asked for.
type commitFiles struct {
	ctx        context.Context
	repository repository
	site       string
	inSite     []entry

	names      []string // of all files outside the site, sorted; nil: not listed yet
	submodules map[string][]entry
}

// Files lists regular files.
func (f *commitFiles) Files(at string) ([]string, error) {
	var names []string
	for _, e := range f.inSite {
		if e.kind == "blob" && e.mode != modeSymlink && hugopaths.Within(e.source, at) {
			names = append(names, e.source)
		}
	}
	if !hugopaths.Within(at, f.site) {
		if err := f.list(); err != nil {
			return nil, err
		}
		names = append(names, within(f.names, at)...)
	}
	slices.Sort(names)
	return names, nil
}

// within are the sorted names at or below a path.
func within(names []string, at string) []string {
	if at == "." {
		return names
	}
	first, exact := slices.BinarySearch(names, at)
	if exact {
		return names[first : first+1]
	}
	first, _ = slices.BinarySearch(names, at+"/")
	last, _ := slices.BinarySearch(names, at+"0") // which sorts right behind the slash
	return names[first:last]
}

// list lists what is outside the site, without its sizes, which take git much longer.
func (f *commitFiles) list() error {
	if f.names != nil {
		return nil
	}
	f.names, f.submodules = []string{}, map[string][]entry{}
	listed, err := f.repository.git.Run(f.ctx, "ls-tree", "-z", "-r", "--full-tree", "HEAD")
	if err != nil {
		return explainMissing(err)
	}
	for _, line := range splitNUL(listed) {
		described, name, _ := strings.Cut(line, "\t")
		switch {
		case hugopaths.Within(name, f.site), strings.HasPrefix(described, modeSymlink):
		case strings.HasPrefix(described, modeSubmodule):
			recorded := entry{object: described[strings.LastIndexByte(described, ' ')+1:], source: name}
			inside, err := submoduleContent(f.ctx, recorded, filepath.Join(f.repository.dir, filepath.FromSlash(name)))
			if err != nil && !errors.As(err, new(*RefusedError)) {
				return err // one that is missing is refused with the tree's changes
			}
			f.submodules[name] = inside
			for _, e := range inside {
				if e.mode != modeSymlink {
					f.names = append(f.names, e.source)
				}
			}
		default:
			f.names = append(f.names, name)
		}
	}
	slices.Sort(f.names)
	return nil
}

// Read reads files of the commit with one git process for each repository.
func (f *commitFiles) Read(names []string, use func(name string, content []byte) error) error {
	outside := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return hugopaths.Within(name, f.site) })
	entries, err := f.below(outside)
	if err != nil {
		return err
	}
	byName := map[string]entry{}
	for _, e := range slices.Concat(f.inSite, entries) {
		byName[e.source] = e
	}
	wanted := make([]entry, len(names))
	for i, name := range names {
		wanted[i] = byName[name]
	}
	return readBlobs(f.ctx, wanted, func(e entry, content []byte) error { return use(e.source, content) })
}

// below are the entries at or below paths outside the site, submodules included.
func (f *commitFiles) below(paths []string) ([]entry, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var entries []entry
	add := func(inside []entry, at string) {
		for _, e := range inside {
			if hugopaths.Within(e.source, at) {
				e.path = e.source
				entries = append(entries, e)
			}
		}
	}
	var listed []string
	for _, at := range paths {
		inSubmodule := false
		for name, inside := range f.submodules {
			if at != name && hugopaths.Within(at, name) {
				inSubmodule = true
				add(inside, at)
			}
		}
		if !inSubmodule && at != "." {
			listed = append(listed, at)
		}
	}
	if len(listed) == 0 && !slices.Contains(paths, ".") {
		return entries, nil
	}
	found, err := f.repository.listTree(f.ctx, true, "HEAD", listed...)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		e.source = e.path
		if e.kind == "commit" {
			add(f.submodules[e.path], e.path)
		} else {
			add([]entry{e}, ".")
		}
	}
	return entries, nil
}
