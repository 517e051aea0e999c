package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// defaultLayers is the folder of the layers where castle.yaml names no other.
const defaultLayers = "terragrunt"

// errNoClusters says that a repository holds no clusters at all.
var errNoClusters = errors.New("no clusters")

// layersOf is the folder with the layers and, in live, the clusters: the folder
// given, or the one in it that castle.yaml names as clusters.
func layersOf(ctx context.Context, given *dagger.Directory) (*dagger.Directory, error) {
	isOne, err := given.Exists(ctx, "live")
	if err != nil || isOne {
		return given, err
	}
	folder, err := clustersFolder(ctx, given)
	if err != nil {
		return nil, err
	}
	layers := given.Directory(folder)
	switch found, err := given.Exists(ctx, path.Join(folder, "live")); {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("%w: there is no folder %s/live with clusters in it; name the folder that holds live with --terragrunt, or as clusters in castle.yaml",
			errNoClusters, folder)
	}
	return layers, nil
}

// clustersFolder is what castle.yaml names. castle-publish holds the rest of
// that file to its schema, and is not compiled for a cluster alone.
func clustersFolder(ctx context.Context, repository *dagger.Directory) (string, error) {
	there, err := repository.Exists(ctx, settingsFile)
	if err != nil || !there {
		return defaultLayers, err
	}
	text, err := repository.File(settingsFile).Contents(ctx)
	if err != nil {
		return "", err
	}
	var named struct{ Clusters string }
	if err := yaml.Unmarshal([]byte(text), &named); err != nil {
		return "", fmt.Errorf("%s: %w", settingsFile, err)
	}
	folder := path.Clean(named.Clusters)
	switch {
	case named.Clusters == "":
		return defaultLayers, nil
	case path.IsAbs(folder) || folder == ".." || strings.HasPrefix(folder, "../"):
		return "", fmt.Errorf("%s: clusters: %s is not in the repository: name a folder by its path from the repository's root", settingsFile, named.Clusters)
	}
	return folder, nil
}

// clustersIn are the names of the clusters that the layers' folder describes.
func clustersIn(ctx context.Context, layers *dagger.Directory) ([]string, error) {
	entries, err := layers.Directory("live").Entries(ctx)
	if err != nil {
		return nil, err
	}
	for i, entry := range entries {
		entries[i] = strings.TrimSuffix(entry, "/")
	}
	slices.Sort(entries)
	return entries, nil
}
