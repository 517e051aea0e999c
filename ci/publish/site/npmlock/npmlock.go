// Package npmlock reads npm's lock files: package-lock.json and npm-shrinkwrap.json.
package npmlock

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
)

// Names are a lock's file names. npm takes the first that is there.
var Names = []string{"npm-shrinkwrap.json", "package-lock.json"}

// Lock is what a lock file pins: Packages by their folders since version 2, Dependencies by their names before. The
// folder of the project itself is "".
type Lock struct {
	Packages     map[string]Package
	Dependencies map[string]Pinned
}

// Pinned is one package as it is downloaded.
type Pinned struct {
	Name, Version, Resolved, Integrity string
}

// Package is a folder of packages. That of a Link is a symbolic link to the folder Resolved of the repository.
type Package struct {
	Pinned
	Link bool

	Dependencies, DevDependencies, OptionalDependencies map[string]string
}

// Parse reads a lock file.
func Parse(text []byte) (Lock, error) {
	var lock Lock
	return lock, json.Unmarshal(text, &lock)
}

// Folders are the folders beside the lock that it links to: workspaces, and dependencies that are named as file:.
func (l Lock) Folders() []string {
	var folders []string
	for _, one := range l.Packages {
		if one.Link {
			folders = append(folders, path.Clean(one.Resolved))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// Needed are those of the Folders that the package in a folder depends on, directly or by way of others of them.
func (l Lock) Needed(folder string) []string {
	seen := map[string]bool{folder: true}
	for open := []string{folder}; len(open) > 0; open = open[1:] {
		one := l.Packages[open[0]]
		for _, names := range []map[string]string{one.Dependencies, one.DevDependencies, one.OptionalDependencies} {
			for name := range names {
				if linked, found := l.link(open[0], name); found && !seen[linked] {
					seen[linked] = true
					open = append(open, linked)
				}
			}
		}
	}
	delete(seen, folder)
	return slices.Sorted(maps.Keys(seen))
}

// link is the folder that a package finds another one in, as Node.js looks for it, if that is a link.
func (l Lock) link(from, name string) (folder string, linked bool) {
	for {
		if one, found := l.Packages[path.Join(from, "node_modules", name)]; found {
			return path.Clean(one.Resolved), one.Link
		}
		if from == "" || from == "." {
			return "", false
		}
		from = path.Dir(from)
	}
}
