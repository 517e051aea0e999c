// Package hugoversion finds the version of Hugo that a site is built with, from the most particular to the most general: what
// castle.yaml or the call says; the file .hugo-version, the site's before the repository's; what the repository's workflows and
// its host's configuration name, where they agree; npm's package hugo-extended; what the site's configuration has as module.hugoVersion; castle's own.
package hugoversion

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
	"tazlab.net/castle/ci/publish/site/npmlock"
)

// Choice is a version of Hugo, such as 0.148.1, and who asks for it.
type Choice struct {
	Version string `json:"version"`
	From    string `json:"from"`
}

// Oldest is the oldest version that castle supports: the first that reads a configuration called hugo.toml. An older one builds
// such a site without any of its settings, and says nothing.
const Oldest = "0.110.0"

// Default is who asks for the version that is used where nobody else asks for any.
const Default = "castle's images.yaml"

// Form is a version's; what it is in words.
var Form = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

const What = "a version of Hugo in three numbers, such as 0.148.1"

// Asked is what castle.yaml and a call may say: a version, and the digest of its image where castle has none of it.
var Asked = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(@sha256:[0-9a-f]{64})?$`)

// Fix is what a person does who wants another version.
func Fix(version string) string {
	return fmt.Sprintf("write hugo: %s for the site in castle.yaml, or give --hugo %[1]s", cmp.Or(version, "VERSION"))
}

const (
	versionFile = ".hugo-version"
	netlifyFile = "netlify.toml"
	workflows   = ".github/workflows"
)

// Paths are the files and folders of a repository that may say something of the version for the site in its folder site.
func Paths(site string) []string {
	both := slices.Concat([]string{versionFile, netlifyFile, packageList}, npmlock.Names, unread)
	paths := append(slices.Clone(both), workflows)
	for _, name := range slices.Concat(both, hugoconfig.Paths()) {
		if at := path.Join(site, name); !slices.Contains(paths, at) {
			paths = append(paths, at)
		}
	}
	return paths
}

// Resolve finds the version for the site in a folder of the repository. asked is what castle.yaml or the call says, its
// version empty where they say nothing, and fallback castle's own version. A version before Oldest is refused.
func Resolve(repository fs.FS, site string, asked Choice, fallback string) (Choice, error) {
	chosen, err := resolve(repository, site, asked, fallback)
	if err == nil && chosen.Version != "" && semver.Compare("v"+chosen.Version, "v"+Oldest) < 0 {
		err = fmt.Errorf("%s asks for Hugo %s, and %s is the oldest that castle supports, since older ones do not read hugo.toml: %s, or any newer one",
			chosen.From, chosen.Version, Oldest, Fix(Oldest))
	}
	return chosen, err
}

func resolve(repository fs.FS, site string, asked Choice, fallback string) (Choice, error) {
	if asked.Version != "" {
		return asked, nil
	}
	r := reader{repository: repository, site: path.Clean(site), fallback: fallback}
	for _, find := range []func() (Choice, error){r.versionFile, r.automation, r.npm, r.constraint} {
		if found, err := find(); err != nil || found.Version != "" {
			return found, err
		}
	}
	return Choice{fallback, Default}, nil
}

// reader reads what a repository says.
type reader struct {
	repository     fs.FS
	site, fallback string
}

// mention is a version as it is written at a place: a file, or a line of one.
type mention struct{ text, at string }

var written = regexp.MustCompile(`^(?:extended_)?v?([0-9]+\.[0-9]+\.[0-9]+)$`)

// version is what is mentioned, without what says that it is one or which edition is meant: the image is the extended one.
func (m mention) version() (string, error) {
	match := written.FindStringSubmatch(m.text)
	if match == nil {
		return "", fmt.Errorf("%s: %q is not %s: correct it", m.at, m.text, What)
	}
	return match[1], nil
}

// pins tells a version from what is only known when a workflow runs.
func (m mention) pins() bool {
	return m.text != "" && m.text != "latest" && !strings.Contains(m.text, "${{")
}

// read is a file's content, none where there is no such file.
func (r reader) read(name string) ([]byte, error) {
	data, err := fs.ReadFile(r.repository, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// both are a file's names at the site and at the repository's root, one where these are the same.
func (r reader) both(name string) []string {
	return slices.Compact([]string{path.Join(r.site, name), name})
}

func (r reader) versionFile() (Choice, error) {
	for _, name := range r.both(versionFile) {
		data, err := r.read(name)
		if err != nil {
			return Choice{}, err
		}
		if said := (mention{strings.TrimSpace(string(data)), name}); said.pins() {
			version, err := said.version()
			if err != nil {
				return Choice{}, fmt.Errorf("%w, or %s", err, Fix(r.fallback))
			}
			return Choice{version, name}, nil
		}
	}
	return Choice{}, nil
}

// automation is what all workflows and the host's configuration agree on.
func (r reader) automation() (Choice, error) {
	var mentions []mention
	for _, find := range []func() ([]mention, error){r.workflows, r.netlify} {
		found, err := find()
		if err != nil {
			return Choice{}, err
		}
		mentions = append(mentions, found...)
	}
	mentions = slices.DeleteFunc(mentions, func(m mention) bool { return !m.pins() })
	places := map[string][]string{}
	var versions []string
	var mistakes []error
	for _, m := range mentions {
		version, err := m.version()
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if places[version] == nil {
			versions = append(versions, version)
		}
		if !slices.Contains(places[version], m.at) {
			places[version] = append(places[version], m.at)
		}
	}
	switch {
	case mistakes != nil:
		return Choice{}, fmt.Errorf("%w; or %s", errors.Join(mistakes...), Fix(cmp.Or(newest(versions), r.fallback)))
	case len(versions) > 1:
		said := make([]string, len(versions))
		for i, version := range versions {
			said[i] = version + " (" + strings.Join(places[version], ", ") + ")"
		}
		return Choice{}, fmt.Errorf("the repository names several versions of Hugo, %s: say which one builds this site: %s",
			strings.Join(said, " and "), Fix(newest(versions)))
	case len(versions) == 1:
		return Choice{versions[0], strings.Join(places[versions[0]], ", ")}, nil
	}
	return Choice{}, nil
}

func newest(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, func(a, b string) int { return semver.Compare("v"+a, "v"+b) })
}

// netlify is the version of a production build: that of its context goes before that of all builds. Source:
// docs.netlify.com/build/configure-builds/file-based-configuration.
func (r reader) netlify() ([]mention, error) {
	var mentions []mention
	for _, name := range r.both(netlifyFile) {
		data, err := r.read(name)
		if err != nil {
			return nil, err
		}
		config, err := hugoconfig.Decode(path.Ext(name), data)
		if err != nil {
			continue // what the host cannot read says nothing
		}
		for _, part := range []hugoconfig.Config{config.Part("context").Part("production"), config.Part("build")} {
			if said := part.Part("environment").Texts("HUGO_VERSION"); said != nil {
				mentions = append(mentions, mention{said[0], name})
				break
			}
		}
	}
	return mentions, nil
}
