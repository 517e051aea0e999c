package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// What castle.yaml does not say.
const (
	defaultClusters = "clusters"
	defaultLayers   = "layers" // where there is one
)

// Files that tell what a folder is.
const (
	clusterFile = "cluster.yaml"
	rootFile    = "root.hcl"
)

// errNoClusters says that a repository holds no clusters at all.
var errNoClusters = errors.New("there are no clusters")

// clusterFolders is where a repository keeps its clusters.
type clusterFolders struct {
	// folder holds a folder for each cluster; names are those of the folders.
	folder string
	names  []string
	// layers is the folder with the repository's own layers, empty where it has
	// none.
	layers string
}

// clustersOf finds the clusters of a repository, or of the folder that holds them.
func (m *Castle) clustersOf(ctx context.Context, given *dagger.Directory) (*clusterFolders, error) {
	named, err := m.namedFolders(ctx, given)
	if err != nil {
		return nil, err
	}
	found := &clusterFolders{folder: cmp.Or(named.Clusters, defaultClusters), layers: named.Layers}
	if found.names, err = clustersIn(ctx, given, found.folder); err != nil {
		return nil, err
	}
	if len(found.names) == 0 && named.Clusters == "" {
		found.folder = "."
		if found.names, err = clustersIn(ctx, given, found.folder); err != nil {
			return nil, err
		}
	}
	if len(found.names) == 0 {
		return nil, fmt.Errorf("%w: no folder in %s has a %s; make one with new-cluster, or name the repository with --repository, or its folder of clusters in %s",
			errNoClusters, cmp.Or(named.Clusters, defaultClusters), clusterFile, settingsFile)
	}
	return found, nil
}

// clustersIn are the names of the folders that describe a cluster.
func clustersIn(ctx context.Context, repository *dagger.Directory, folder string) ([]string, error) {
	files, err := repository.Glob(ctx, path.Join(folder, "*", clusterFile))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = path.Base(path.Dir(file))
	}
	slices.Sort(names)
	return names, nil
}

// named is what castle.yaml says of clusters, and to whoever looks at one.
type named struct {
	Clusters, Layers string
	GitOps           struct {
		URL    string `yaml:"url"`
		Branch string `yaml:"branch"`
	} `yaml:"gitops"`
	Registry struct {
		Username string `yaml:"username"`
	} `yaml:"registry"`
	Sites map[string]struct {
		Image string `yaml:"image"`
	} `yaml:"sites"`
}

// namedFolders reads castle.yaml. castle-publish holds that file to its schema,
// and is not compiled for a cluster alone. All that works on clusters begins here.
func (m *Castle) namedFolders(ctx context.Context, repository *dagger.Directory) (named named, err error) {
	if err := m.refuseTheModulesOwn(ctx, repository, "--repository"); err != nil {
		return named, err
	}
	there, err := repository.Exists(ctx, settingsFile)
	if err != nil {
		return named, err
	}
	if there {
		text, err := repository.File(settingsFile).Contents(ctx)
		if err != nil {
			return named, err
		}
		if err := yaml.Unmarshal([]byte(text), &named); err != nil {
			return named, fmt.Errorf("%s: %w", settingsFile, err)
		}
	}
	for _, field := range []struct {
		name   string
		folder *string
	}{{"clusters", &named.Clusters}, {"layers", &named.Layers}} {
		given := *field.folder
		if given == "" {
			continue
		}
		if *field.folder = path.Clean(given); path.IsAbs(given) || *field.folder == ".." || strings.HasPrefix(*field.folder, "../") {
			return named, fmt.Errorf("%s: %s: %s is not in the repository: name a folder by its path from the repository's root", settingsFile, field.name, given)
		}
	}
	switch has, err := repository.Exists(ctx, path.Join(cmp.Or(named.Layers, defaultLayers), rootFile)); {
	case err != nil:
		return named, err
	case has && named.Layers == "":
		named.Layers = defaultLayers
	case !has && named.Layers != "":
		return named, fmt.Errorf("%s: layers: there is no %s in %s: it is the folder that `dagger call eject` writes, with castle's layers in it", settingsFile, rootFile, named.Layers)
	}
	return named, nil
}
