package sitesettle

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// site is what the configuration says of terms.
type site struct {
	files         fs.FS
	folder        string // the site's, in files
	config        hugoconfig.Config
	main          string // the language of content that names none
	languages     []language
	switchedOff   []string // languages that are configured but not built
	roots         []root
	keepCase      bool // disablePathToLower
	removeAccents bool
	ownAddresses  bool // terms may have other addresses than their paths
	settlesTerms  bool // this Hugo knows what terms are settled with
}

// root is a folder of content.
type root struct {
	dir       string   // in the files
	at        string   // where in the content it stands, empty for the top
	languages []string // of files whose name has none
	foreign   bool     // a theme's: read, never written to
}

func openSite(files fs.FS, folder string) (*site, error) {
	own, err := fs.Sub(files, folder)
	if err != nil {
		return nil, err
	}
	config, err := hugoconfig.LoadFS(own)
	if err != nil {
		return nil, err
	}
	s := &site{
		files:         files,
		folder:        folder,
		config:        config,
		keepCase:      config.Bool("disablePathToLower", false),
		removeAccents: config.Bool("removePathAccents", false),
		ownAddresses:  config["permalinks"] != nil || config["uglyurls"] != nil,
	}
	s.readLanguages()
	s.readRoots()
	return s, nil
}

// readRoots lists the folders of content, those of the site before its themes'.
func (s *site) readRoots() {
	s.readMounts()
	if len(s.roots) == 0 {
		dir := s.config.Text("contentDir", "content")
		for _, l := range s.mainFirst() {
			s.addRoot(root{dir: s.config.Part("languages").Part(l.code).Text("contentDir", dir), languages: []string{l.code}})
		}
	}
	themes := s.config.Texts("theme")
	for _, module := range s.config.Part("module").Parts("imports") {
		themes = append(themes, module.Text("path", ""))
	}
	for _, theme := range themes {
		for _, folder := range []string{s.config.Text("themesDir", "themes"), "_vendor"} {
			s.addRoot(root{dir: path.Join(folder, theme, "content"), languages: []string{s.main}, foreign: true})
		}
	}
}

// mainFirst are the languages with the main one before the others: a folder of several languages is the main one's.
func (s *site) mainFirst() []language {
	languages := slices.Clone(s.languages)
	slices.SortStableFunc(languages, func(a, b language) int {
		switch s.main {
		case a.code:
			return -1
		case b.code:
			return 1
		default:
			return 0
		}
	})
	return languages
}

// readMounts takes the site's own folders that are mounted as content. Where there are any, contentDir has no say.
func (s *site) readMounts() {
	for _, mount := range s.config.Part("module").Parts("mounts") {
		target := path.Clean(mount.Text("target", ""))
		if target != "content" && !strings.HasPrefix(target, "content/") {
			continue
		}
		languages := append(mount.Texts("lang"), mount.Part("sites").Part("matrix").Texts("languages")...)
		s.addRoot(root{
			dir:       mount.Text("source", ""),
			at:        strings.Trim(strings.TrimPrefix(target, "content"), "/"),
			languages: s.matching(languages),
		})
	}
}

// matching are the languages that globs of Hugo's sites.matrix name, the main one where there is no glob.
func (s *site) matching(globs []string) []string {
	if len(globs) == 0 {
		return []string{s.main}
	}
	var codes []string
	for _, l := range s.languages {
		if slices.ContainsFunc(globs, func(glob string) bool {
			matched, _ := path.Match(strings.ToLower(strings.ReplaceAll(glob, "**", "*")), l.code)
			return matched
		}) {
			codes = append(codes, l.code)
		}
	}
	return codes
}

// addRoot adds a folder that is there, once. Its dir is relative to the site's.
func (s *site) addRoot(added root) {
	added.dir = path.Join(s.folder, added.dir)
	known := slices.ContainsFunc(s.roots, func(r root) bool { return r.dir == added.dir && r.at == added.at })
	if info, err := fs.Stat(s.files, added.dir); known || err != nil || !info.IsDir() {
		return
	}
	s.roots = append(s.roots, added)
}
