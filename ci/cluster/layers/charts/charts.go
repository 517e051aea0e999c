// Package charts puts together the charts that the layers install, from the list in terragrunt/charts.yaml. It fetches them
// itself, since Helm's own library would make castle-cluster half as large again: 129 instead of 88 MB.
package charts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/base/digest"
	"tazlab.net/castle/ci/cluster/config"
)

// ChartsFile is the list of charts within the folder terragrunt.
const ChartsFile = "charts.yaml"

// chartFile holds a chart's own name and version.
const chartFile = "Chart.yaml"

// Chart is one entry of that list: where a chart comes from. The list's own comment explains it.
type Chart struct {
	Name       string `yaml:"-"`
	Version    string `yaml:"version"`
	Repository string `yaml:"repository"` // URL of the Helm repository that has it; empty for one of our own
	Digest     string `yaml:"digest"`     // "sha256:…" of the archive that the repository has; empty where nobody has written it down
	Tool       string `yaml:"tool"`       // the recipe whose build keeps the chart
	Path       string `yaml:"path"`       // the chart's folder among what that build keeps
	Overlay    string `yaml:"overlay"`    // a folder of terragrunt
	CRDs       []CRDs `yaml:"crds"`
	// Metadata of the definitions in CRDs, beside what they have and the label of their component, which is the tool.
	Metadata Metadata `yaml:"metadata"`
	Images   []Image  `yaml:"images"`   // what its pods run
	Platform string   `yaml:"platform"` // the only platform that has it; empty for all

	terragrunt string
}

// CRDs is a source of a chart's crds folder: a folder that a tool's build keeps, or the same as one file.
type CRDs struct {
	Tool   string `yaml:"tool"`
	Path   string `yaml:"path"`
	URL    string `yaml:"url"`
	Digest string `yaml:"digest"` // "sha256:…" of what is at URL; empty where nobody has written it down
}

// Metadata is what an object is found by, and what others are told about it.
type Metadata struct {
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Image is an image of a chart's pods, and where they run.
type Image struct {
	Name  string `yaml:"image"` // "quay.io/metallb/speaker:v0.15.2"
	Nodes string `yaml:"nodes"`
}

// Nodes that an image's pods run on.
const (
	OnAll     = "all"     // each node
	OnWorkers = "workers" // each worker
	OnAny     = "any"     // a worker, whichever the scheduler picks
)

// ToolFolder gives the folder of what a tool's build keeps.
type ToolFolder func(tool string) (string, error)

// ErrRepositoryOnly says that only its Helm repository has a chart.
var ErrRepositoryOnly = errors.New("only its Helm repository has this chart")

// Charts reads the list in a folder terragrunt, in order of the names.
func Charts(terragrunt string) ([]Chart, error) {
	data, err := os.ReadFile(filepath.Join(terragrunt, ChartsFile))
	if err != nil {
		return nil, err
	}
	var list struct {
		Charts map[string]Chart `yaml:"charts"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", ChartsFile, err)
	}
	charts := make([]Chart, 0, len(list.Charts))
	for name, chart := range list.Charts {
		for _, image := range chart.Images {
			if image.Name == "" || !slices.Contains([]string{OnAll, OnWorkers, OnAny}, image.Nodes) {
				return nil, fmt.Errorf("%s: chart %s has the image %q on the nodes %q: they must be %s, %s or %s",
					ChartsFile, name, image.Name, image.Nodes, OnAll, OnWorkers, OnAny)
			}
		}
		digests := []string{chart.Digest}
		for _, crds := range chart.CRDs {
			digests = append(digests, crds.Digest)
		}
		for _, given := range digests {
			if given != "" && !digest.Valid(given) {
				return nil, fmt.Errorf("%s: chart %s has the digest %q, which is not sha256: and 64 digits from 0 to f", ChartsFile, name, given)
			}
		}
		chart.Name, chart.terragrunt = name, terragrunt
		charts = append(charts, chart)
	}
	slices.SortFunc(charts, func(a, b Chart) int { return strings.Compare(a.Name, b.Name) })
	return charts, nil
}

// Later says that no cluster installs the chart yet: create refuses its platform. A download less, of those that every create waits for.
func (c Chart) Later() bool { return c.Platform == config.PlatformAWS }

// Compose puts the chart together as the folder dest, which must not exist, without its repository: from what a tool's
// build keeps and from this project's own files. It gives ErrRepositoryOnly where that cannot be done, and fails when the
// chart is not of the version that the list pins.
func (c Chart) Compose(dest string, folderOf ToolFolder) (err error) {
	if c.Tool == "" && c.Overlay == "" {
		return fmt.Errorf("chart %s: %w", c.Name, ErrRepositoryOnly)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("chart %s: %w", c.Name, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dest, 0o755); err != nil {
		return err
	}
	if err := c.compose(dest, folderOf); err != nil {
		return errors.Join(err, os.RemoveAll(dest))
	}
	return nil
}

func (c Chart) compose(dest string, folderOf ToolFolder) error {
	if c.Tool != "" {
		kept, err := folderOf(c.Tool)
		if err != nil {
			return err
		}
		if err := copytree.Over(filepath.Join(kept, c.Path), dest); err != nil {
			return err
		}
	}
	if c.Overlay != "" {
		if err := copytree.Over(filepath.Join(c.terragrunt, c.Overlay), dest); err != nil {
			return err
		}
	}
	for _, crds := range c.CRDs {
		kept, err := folderOf(crds.Tool)
		if err != nil {
			return err
		}
		folder := filepath.Join(dest, "crds", crds.Tool)
		if err := copytree.Over(filepath.Join(kept, crds.Path), folder); err != nil {
			return err
		}
		if err := c.describe(crds, folder); err != nil {
			return err
		}
	}
	return c.check(dest)
}

func (c Chart) check(folder string) error {
	data, err := os.ReadFile(filepath.Join(folder, chartFile))
	if err != nil {
		return err
	}
	var chart struct {
		Version string `yaml:"version"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return fmt.Errorf("%s: %w", chartFile, err)
	}
	if chart.Version != c.Version {
		return fmt.Errorf("it is of version %s, but %s pins %s", chart.Version, ChartsFile, c.Version)
	}
	return nil
}

// ComposeAll puts the charts together below dest, each as a folder of its name, but for those that only a repository has,
// whose names it returns.
func ComposeAll(terragrunt, dest string, folderOf ToolFolder) (left []string, err error) {
	charts, err := Charts(terragrunt)
	if err != nil {
		return nil, err
	}
	for _, chart := range charts {
		if chart.Later() {
			continue
		}
		err := chart.Compose(filepath.Join(dest, chart.Name), folderOf)
		if errors.Is(err, ErrRepositoryOnly) {
			left = append(left, chart.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}
