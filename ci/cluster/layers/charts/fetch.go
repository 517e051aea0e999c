package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/copytree"
)

// Limits of what is fetched, against a server that sends without end.
const (
	maxIndex = 64 << 20
	maxChart = 32 << 20
)

// fetchTime is how long one download may take.
const fetchTime = 2 * time.Minute

// Fetch puts the chart together as the folder dest, which must not exist, from its Helm repository and the addresses of its
// CRDs, and gives what it has downloaded for that. What has not the digest that the list pins is not even unpacked.
func (c Chart) Fetch(ctx context.Context, dest string) (downloads []Download, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("chart %s: %w", c.Name, err), os.RemoveAll(dest))
		}
	}()
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return nil, err
	}
	if c.Repository != "" {
		archive, err := c.archive(ctx)
		if err != nil {
			return nil, err
		}
		data, download, err := proven(ctx, archive, c.Digest)
		if err != nil {
			return nil, err
		}
		downloads = append(downloads, download)
		if err := unpack(archive, data, dest); err != nil {
			return nil, err
		}
	} else if c.Overlay != "" {
		if err := copytree.Over(filepath.Join(c.terragrunt, c.Overlay), dest); err != nil {
			return nil, err
		}
	}
	for _, crds := range c.CRDs {
		data, download, err := proven(ctx, crds.URL, crds.Digest)
		if err != nil {
			return nil, err
		}
		downloads = append(downloads, download)
		folder := filepath.Join(dest, "crds", crds.Tool)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, path.Base(crds.URL)), data, 0o644); err != nil {
			return nil, err
		}
		if err := c.describe(crds, folder); err != nil {
			return nil, err
		}
	}
	return downloads, c.check(dest)
}

// archive is the address of the chart's version, out of the repository's index.
func (c Chart) archive(ctx context.Context) (string, error) {
	repository := strings.TrimSuffix(c.Repository, "/") + "/"
	data, err := get(ctx, repository+"index.yaml", maxIndex)
	if err != nil {
		return "", err
	}
	var index struct {
		Entries map[string][]struct {
			Version string   `yaml:"version"`
			URLs    []string `yaml:"urls"`
		} `yaml:"entries"`
	}
	if err := yaml.Unmarshal(data, &index); err != nil {
		return "", fmt.Errorf("the index of %s: %w", c.Repository, err)
	}
	for _, entry := range index.Entries[c.Name] {
		if strings.TrimPrefix(entry.Version, "v") != c.Version || len(entry.URLs) == 0 {
			continue
		}
		base, err := url.Parse(repository)
		if err != nil {
			return "", err
		}
		archive, err := base.Parse(entry.URLs[0]) // may be relative to the repository
		if err != nil {
			return "", err
		}
		return archive.String(), nil
	}
	return "", fmt.Errorf("%s has no version %s of it", c.Repository, c.Version)
}

// unpack writes a chart's archive, whose one top folder is left out.
func unpack(address string, data []byte, dest string) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	root, err := os.OpenRoot(dest)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		_, name, below := strings.Cut(path.Clean(header.Name), "/")
		if !below || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeBelow(root, name, io.LimitReader(archive, maxChart)); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
}

func writeBelow(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

func get(ctx context.Context, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", address, limit)
	}
	return data, err
}

// FetchAll puts all charts together below dest, each as a folder of its name, from their repositories, and notes beside them
// what it has downloaded.
func FetchAll(ctx context.Context, terragrunt, dest string) error {
	charts, err := Charts(terragrunt)
	if err != nil {
		return err
	}
	var downloads []Download
	for _, chart := range charts {
		if chart.Later() {
			continue
		}
		fetched, fetchErr := chart.Fetch(ctx, filepath.Join(dest, chart.Name))
		downloads, err = append(downloads, fetched...), errors.Join(err, fetchErr)
	}
	if err != nil {
		return err
	}
	return writeDownloads(filepath.Join(dest, downloadsFile), downloads)
}
