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
		for _, name := range unread {
			for _, at := range r.both(name) {
				found, err := r.mentioned(at)
				if err != nil {
					return nil, err
				}
				notes = append(notes, found...)
			}
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

// mentioned looks for a version in a file, or in the files of a folder.
func (r reader) mentioned(at string) (notes []string, err error) {
	if _, err := fs.Stat(r.repository, at); err != nil {
		return nil, nil
	}
	err = fs.WalkDir(r.repository, at, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := r.read(name)
		if match := named.FindSubmatch(data); match != nil {
			notes = append(notes, fmt.Sprintf("%s names Hugo %s, and castle does not read it: %s",
				name, match[1], Fix(string(match[1]))))
		}
		return err
	})
	return notes, err
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
