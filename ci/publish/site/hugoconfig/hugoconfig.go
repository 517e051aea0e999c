// Package hugoconfig reads the configuration of a Hugo site as a production build sees it: the file at the site's top, then
// those below config/_default and config/production, later settings winning. A theme's configuration is not read: what castle
// asks for is taken from the site alone, by Hugo too.
package hugoconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// topNames are the files that hold the top-level settings, the first that exists winning. Source:
// gohugo.io/configuration/introduction.
var topNames = []string{"hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml", "config.yml", "config.json"}

// folders hold files each of which is a part of the configuration, later folders winning.
var folders = []string{"config/_default", "config/production"}

// Config is a part of a configuration: keys in lower case, since their case does not count, and values as YAML would give
// them: map[string]any, []any, string, bool, numbers and times.
type Config map[string]any

// FileError says that a file of the configuration cannot be decoded.
type FileError struct {
	Name string // by its path in the site's folder
	Err  error
}

func (e *FileError) Error() string { return e.Name + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// Paths are the files and folders of a site that may hold its configuration.
func Paths() []string { return slices.Concat(topNames, folders) }

// Files are those that matter among the files of a site, which names lists by their paths in the site's folder, with slashes:
// in the order in which later settings win.
func Files(names []string) []string {
	var files []string
	if i := slices.IndexFunc(topNames, func(name string) bool { return slices.Contains(names, name) }); i >= 0 {
		files = append(files, topNames[i])
	}
	names = slices.Sorted(slices.Values(names))
	for _, folder := range folders {
		for _, name := range names {
			if strings.HasPrefix(name, folder+"/") && slices.Contains(extensions, path.Ext(name)) {
				files = append(files, name)
			}
		}
	}
	return files
}

// Load reads the Files among names. One that cannot be decoded is a *FileError; errors of read are returned as they are.
func Load(names []string, read func(name string) ([]byte, error)) (Config, error) {
	config := Config{}
	for _, name := range Files(names) {
		if err := config.add(name, keyOf(name), read); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// LoadFS is Load on a site that is a file system.
func LoadFS(site fs.FS) (Config, error) {
	names, err := FilesFS(site)
	if err != nil {
		return nil, err
	}
	return LoadFiles(site, names...)
}

// LoadFiles is Load on files of a site that is a file system.
func LoadFiles(site fs.FS, names ...string) (Config, error) {
	return Load(names, func(name string) ([]byte, error) { return fs.ReadFile(site, name) })
}

// FilesFS is Files on a site that is a file system.
func FilesFS(site fs.FS) ([]string, error) {
	var names []string
	for _, name := range topNames {
		if info, err := fs.Stat(site, name); err == nil && !info.IsDir() {
			names = append(names, name)
		}
	}
	for _, folder := range folders {
		if _, err := fs.Stat(site, folder); err != nil {
			continue
		}
		err := fs.WalkDir(site, folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return Files(names), nil
}

var extensions = []string{".toml", ".yaml", ".yml", ".json"}

// keyOf is where a file of a configuration folder belongs: hugo.toml at the top, taxonomies.toml under its name, and
// languages.de.toml, params.de.toml or menus.de.toml under the language. Source: config/configLoader.go of Hugo v0.165.0.
func keyOf(name string) []string {
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	if base == "hugo" || base == "config" {
		return nil
	}
	key, language, _ := strings.Cut(base, ".")
	switch {
	case language == "":
		return []string{key}
	case key == "menu", key == "menus", key == "params":
		return []string{"languages", language, key}
	default:
		return []string{"languages", language}
	}
}

// add puts a file's settings under a key, over what is there.
func (c Config) add(name string, key []string, read func(name string) ([]byte, error)) error {
	content, err := read(name)
	if err != nil {
		return err
	}
	settings, err := Decode(path.Ext(name), content)
	if err != nil {
		return &FileError{Name: name, Err: err}
	}
	if len(key) == 1 {
		if inner, ok := settings[strings.ToLower(key[0])].(map[string]any); ok && len(settings) == 1 {
			settings = inner // taxonomies.toml may have all of its settings in a table [taxonomies]
		}
	}
	for _, part := range slices.Backward(key) {
		settings = Config{strings.ToLower(part): map[string]any(settings)}
	}
	merge(c, settings)
	return nil
}

// merge sets values of a map in another, maps recursively.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		present, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			merge(present, inner)
			continue
		}
		into[key] = value
	}
}

// Decode reads TOML, YAML or JSON, by a file's extension.
func Decode(extension string, content []byte) (Config, error) {
	settings := map[string]any{}
	var err error
	switch extension {
	case ".toml":
		err = toml.Unmarshal(content, &settings)
	case ".json":
		err = json.Unmarshal(content, &settings)
	default:
		err = yaml.Unmarshal(content, &settings)
	}
	if err != nil {
		return nil, err
	}
	lowered, _ := normal(settings).(map[string]any)
	return lowered, nil
}

// normal gives keys their lower case, and maps and lists the same types from whatever format they were read.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		lowered := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			lowered[strings.ToLower(key)] = normal(value[key])
		}
		return lowered
	case map[any]any:
		lowered := make(map[string]any, len(value))
		for key, inner := range value {
			lowered[strings.ToLower(fmt.Sprint(key))] = normal(inner)
		}
		return lowered
	case []map[string]any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = normal(inner)
		}
		return list
	case []any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = normal(inner)
		}
		return list
	default:
		return value
	}
}

// Part is the map at a key, nil where there is none.
func (c Config) Part(key string) Config {
	part, _ := c[strings.ToLower(key)].(map[string]any)
	return part
}

// Bool is a setting that is on or off, in the words that Hugo takes for it; otherwise is its default.
func (c Config) Bool(key string, otherwise bool) bool {
	switch value := c[strings.ToLower(key)].(type) {
	case bool:
		return value
	case string:
		return strings.EqualFold(value, "true")
	default:
		return otherwise
	}
}

// Int is a setting that is a whole number, 0 where there is none.
func (c Config) Int(key string) int {
	number, _ := strconv.ParseFloat(fmt.Sprint(c[strings.ToLower(key)]), 64)
	return int(number)
}

// Text is a setting that is a string; otherwise is its default.
func (c Config) Text(key, otherwise string) string {
	if value, ok := c[strings.ToLower(key)].(string); ok {
		return value
	}
	return otherwise
}

// Texts is a setting that is a list of strings, or a single one. What in a list is no string is written as one.
func (c Config) Texts(key string) []string {
	switch value := c[strings.ToLower(key)].(type) {
	case nil, map[string]any:
		return nil
	case []any:
		texts := make([]string, len(value))
		for i, inner := range value {
			if inner != nil {
				texts[i] = fmt.Sprint(inner)
			}
		}
		return texts
	default:
		return []string{fmt.Sprint(value)}
	}
}

// Parts is a setting that is a list of maps.
func (c Config) Parts(key string) []Config {
	list, _ := c[strings.ToLower(key)].([]any)
	var parts []Config
	for _, inner := range list {
		if part, ok := inner.(map[string]any); ok {
			parts = append(parts, part)
		}
	}
	return parts
}

// Languages are the codes of the site's languages that are not switched off, in Hugo's order: by weight, those without one
// last, then by name. Source: langs/config.go of Hugo v0.165.0.
func (c Config) Languages() []string {
	all, off := c.Part("languages"), c.Texts("disableLanguages")
	var codes []string
	for code := range all {
		if !slices.Contains(off, code) && !all.Part(code).Bool("disabled", false) {
			codes = append(codes, code)
		}
	}
	if len(codes) == 0 {
		return []string{cmp.Or(strings.ToLower(c.Text("defaultContentLanguage", "")), "en")}
	}
	weight := func(code string) uint { return uint(all.Part(code).Int("weight")) - 1 } // none comes last
	slices.SortFunc(codes, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), strings.Compare(a, b))
	})
	return codes
}

// MainLanguage is the language of content that names none: the one that is configured, else English, else the first.
func (c Config) MainLanguage() string {
	codes := c.Languages()
	for _, code := range []string{strings.ToLower(c.Text("defaultContentLanguage", "")), "en"} {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return codes[0]
}
