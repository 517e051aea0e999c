package hugoversion

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// constraint is the end of module.hugoVersion that castle's own version is beyond; none where it is within.
func (r reader) constraint() (Choice, error) {
	least, most, err := r.bounds()
	if err != nil {
		return Choice{}, err
	}
	for _, bound := range []struct {
		mention
		beyond int // what comparing castle's version with it gives, where it is beyond
	}{{most, +1}, {least, -1}} {
		if bound.text == "" {
			continue
		}
		version, err := bound.number()
		if err != nil {
			return Choice{}, fmt.Errorf("%w, or %s", err, Fix(r.fallback))
		}
		if semver.Compare("v"+r.fallback, version) == bound.beyond {
			return Choice{strings.TrimPrefix(version, "v"), bound.at}, nil
		}
	}
	return Choice{}, nil
}

// bounds are min and max of the site's configuration, each from the last file that has it.
func (r reader) bounds() (least, most mention, err error) {
	site, err := fs.Sub(r.repository, r.site)
	if err != nil {
		return mention{}, mention{}, err
	}
	files, err := hugoconfig.FilesFS(site)
	if err != nil {
		return mention{}, mention{}, err
	}
	for _, name := range files {
		config, err := hugoconfig.LoadFiles(site, name)
		if broken, ok := errors.AsType[*hugoconfig.FileError](err); ok {
			broken.Name = path.Join(r.site, name)
		}
		if err != nil {
			return mention{}, mention{}, err
		}
		asked := config.Part("module").Part("hugoVersion")
		for key, bound := range map[string]*mention{"min": &least, "max": &most} {
			if said := asked.Texts(key); said != nil {
				*bound = mention{said[0], "module.hugoVersion." + key + " of " + path.Join(r.site, name)}
			}
		}
	}
	return least, most, nil
}

// number reads a bound as Hugo does: 0.110 is 0.110.0, and what follows a hyphen names a version before its release, of which
// there is no image. It is in semver's form.
func (m mention) number() (string, error) {
	numbers, _, _ := strings.Cut(strings.TrimPrefix(m.text, "v"), "-")
	version := semver.Canonical("v" + numbers)
	if version == "" {
		return "", fmt.Errorf("%s: %q is no version of Hugo: correct it", m.at, m.text)
	}
	return version, nil
}
