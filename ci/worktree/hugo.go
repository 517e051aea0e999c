package worktree

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// hugoFolders are where a site's configuration may stand, later ones winning. Source: gohugo.io/configuration/introduction.
var hugoFolders = []string{".", "config/_default", "config/production"}

// hugoNames are the files that hold Hugo's top-level settings, the first that exists winning.
var hugoNames = []string{"hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml", "config.yml", "config.json"}

// usesGitInfo reports whether the site's committed configuration sets enableGitInfo, so that the build reads the history.
func usesGitInfo(ctx context.Context, entries []entry) (bool, error) {
	byPath := map[string]entry{}
	for _, e := range entries {
		byPath[e.path] = e
	}
	enabled := false
	for _, folder := range hugoFolders {
		for _, name := range hugoNames {
			config, exists := byPath[path.Join(folder, name)]
			if !exists || config.kind != "blob" {
				continue
			}
			err := readBlobs(ctx, []entry{config}, func(e entry, content []byte) error {
				set, value, err := gitInfoSetting(e.path, content)
				if err != nil {
					return fmt.Errorf("%s: %w", e.source, err)
				}
				if set {
					enabled = value
				}
				return nil
			})
			if err != nil {
				return false, err
			}
			break
		}
	}
	return enabled, nil
}

// gitInfoSetting reads enableGitInfo, whose case does not count, from a file of Hugo's configuration.
func gitInfoSetting(name string, content []byte) (set, value bool, err error) {
	settings := map[string]any{}
	switch path.Ext(name) {
	case ".toml":
		err = toml.Unmarshal(content, &settings)
	case ".json":
		err = json.Unmarshal(content, &settings)
	default:
		err = yaml.Unmarshal(content, &settings)
	}
	if err != nil {
		return false, false, err
	}
	for key, setting := range settings {
		if strings.EqualFold(key, "enableGitInfo") {
			value, _ = setting.(bool)
			return true, value, nil
		}
	}
	return false, false, nil
}
