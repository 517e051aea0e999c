package hugoversion

import (
	"encoding/json"
	"path"

	"tazlab.net/castle/ci/publish/site/npmlock"
)

const packageList = "package.json"

// npm is the version of the package hugo-extended, which is that of the Hugo that it brings: as the lock file pins it, else
// as package.json names it exactly. The package hugo-bin has versions of its own.
func (r reader) npm() (Choice, error) {
	for _, folder := range r.both(".") {
		for _, name := range npmlock.Names {
			data, err := r.read(path.Join(folder, name))
			if err != nil {
				return Choice{}, err
			}
			lock, err := npmlock.Parse(data)
			if err != nil {
				continue // what npm cannot read says nothing
			}
			if version := lock.Packages["node_modules/hugo-extended"].Version; Form.MatchString(version) {
				return Choice{version, path.Join(folder, name)}, nil
			}
		}
		data, err := r.read(path.Join(folder, packageList))
		if err != nil {
			return Choice{}, err
		}
		var list struct{ Dependencies, DevDependencies map[string]string }
		if json.Unmarshal(data, &list) != nil {
			continue
		}
		for _, dependencies := range []map[string]string{list.DevDependencies, list.Dependencies} {
			if version := dependencies["hugo-extended"]; Form.MatchString(version) {
				return Choice{version, path.Join(folder, packageList)}, nil
			}
		}
	}
	return Choice{}, nil
}
