package hugoversion

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// unread are files, and folders of files, that may name a version of Hugo and that Resolve does not read.
var unread = []string{
	".tool-versions", "mise.toml", ".mise.toml", ".gitlab-ci.yml", "vercel.json", "Dockerfile", ".gitea/workflows", ".forgejo/workflows",
}

var named = regexp.MustCompile(`(?i)hugo[^\n]{0,60}?\b(?:extended_)?v?([0-9]+\.[0-9]+\.[0-9]+)`)

// Unheard says what files of the repository ask of Hugo that the build does not heed, one sentence each with the fix: a version
// where the chosen one is castle's own, and what Netlify's configuration sets beside the version.
func Unheard(repository fs.FS, site string, chosen Choice) ([]string, error) {
	r := reader{repository: repository, site: path.Clean(site)}
	var notes []string
	if chosen.From == Default {
		var err error
		if notes, err = r.unreadVersions(); err != nil {
			return nil, err
		}
	}
	for _, name := range r.both(netlifyFile) {
		data, err := r.read(name)
		if err != nil {
			return nil, err
		}
		if config, err := hugoconfig.Decode(path.Ext(name), data); err == nil {
			notes = append(notes, netlifySettings(name, config)...)
		}
	}
	return notes, nil
}

// unreadVersions are the versions that files name which are not read, one note for each version.
func (r reader) unreadVersions() (notes []string, err error) {
	var versions []string
	files := map[string][]string{} // by version
	for _, name := range unread {
		for _, at := range r.both(name) {
			if _, err := fs.Stat(r.repository, at); err != nil {
				continue
			}
			err := fs.WalkDir(r.repository, at, func(name string, entry fs.DirEntry, err error) error {
				if err != nil || !entry.Type().IsRegular() {
					return err
				}
				data, err := r.read(name)
				if match := named.FindSubmatch(data); match != nil {
					version := string(match[1])
					if files[version] == nil {
						versions = append(versions, version)
					}
					files[version] = append(files[version], name)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	for _, version := range versions {
		verb, them := "names", "it"
		if len(files[version]) > 1 {
			verb, them = "name", "them"
		}
		notes = append(notes, fmt.Sprintf("%s %s Hugo %s, and castle does not read %s: %s",
			strings.Join(files[version], ", "), verb, version, them, Fix(version)))
	}
	return notes, nil
}

// heeded are the flags of a build command that castle gives itself, or that change nothing in a fresh folder.
var heeded = []string{"--gc", "--minify", "--baseURL", "-b", "--cleanDestinationDir", "--destination", "-d", "--source", "-s"}

// netlifySettings names what a production build at Netlify would be told.
func netlifySettings(name string, config hugoconfig.Config) []string {
	production, build := config.Part("context").Part("production"), config.Part("build")
	var settings []string
	for _, part := range []hugoconfig.Config{production, build} {
		for _, key := range slices.Sorted(maps.Keys(part.Part("environment"))) {
			if key = strings.ToUpper(key); strings.HasPrefix(key, "HUGO_") && key != "HUGO_VERSION" {
				settings = append(settings, key)
			}
		}
	}
	command := production.Text("command", build.Text("command", ""))
	if _, flags, found := strings.Cut(" "+command, " hugo "); found {
		for word := range strings.FieldsSeq(flags) {
			if word == "&&" || word == ";" {
				break
			}
			flag, _, _ := strings.Cut(word, "=")
			if strings.HasPrefix(flag, "-") && !slices.Contains(heeded, flag) {
				settings = append(settings, flag)
			}
		}
	}
	if len(settings) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s have no effect on castle's build: set them in Hugo's configuration, "+
		"below config/production where they are for publishing alone", name, strings.Join(settings, ", "))}
}
