package worktree

import (
	"fmt"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/publish/site/hugopaths"
)

// Copy is Export of the files as they are, committed or not, for a look at a site: of its folder all, and what its
// configuration names outside. It asks Git nothing.
func Copy(options Options, dest string) (site string, err error) {
	subdir, err := options.subdir()
	if err != nil {
		return "", err
	}
	from := filepath.Join(options.Dir, filepath.FromSlash(subdir))
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s has no folder %s: name the Hugo site's folder with --path", options.Dir, options.Subdir)
	}
	c := committed{subdir: subdir}
	if c.outside, err = hugopaths.Find(hugopaths.Folder(options.Dir), c.site(), options.Packages); err != nil {
		return "", err
	}
	for _, problem := range c.outside.Problems {
		c.problems = append(c.problems, Problem(problem))
	}
	if err := refuse(c.problems...); err != nil {
		return "", err
	}
	top, site := dest, dest
	if c.mirrored() {
		top = filepath.Join(dest, c.outside.Top)
		site = filepath.Join(top, filepath.FromSlash(subdir))
	}
	if err := os.CopyFS(site, os.DirFS(from)); err != nil {
		return "", err
	}
	for _, at := range c.outside.Paths {
		names, err := hugopaths.Folder(options.Dir).Files(at)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if hugopaths.Within(name, c.site()) {
				continue
			}
			if err := copytree.Over(filepath.Join(options.Dir, name), filepath.Join(top, name)); err != nil {
				return "", err
			}
		}
	}
	return site, nil
}
