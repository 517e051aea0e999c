package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archive is a chart's archive of files by their names within it.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	writer := tar.NewWriter(zipped)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// repository serves files by their paths.
func repository(t *testing.T, files map[string][]byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, has := files[r.URL.Path]
		if !has {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestChartsAreFetchedFromTheirRepositoriesAtTheirVersions(t *testing.T) {
	url := repository(t, map[string][]byte{
		"/charts/index.yaml": []byte("entries:\n  one:\n  - {version: 2.0.0, urls: [two.tgz]}\n  - {version: v1.0.0, urls: [one.tgz]}\n"),
		"/charts/one.tgz":    archive(t, map[string]string{"one/Chart.yaml": "version: 1.0.0\n", "one/templates/x": "x"}),
		"/kind.yaml":         []byte("kind"),
	})
	p := newProject(t, map[string]string{
		"terragrunt/charts.yaml": "charts:\n  one: {version: 1.0.0, repository: '" + url + "/charts', tool: a, overlay: laid}\n" +
			"  later: {version: 1.0.0, repository: '" + url + "/nowhere', platform: aws}\n" +
			"  own: {version: 3.0.0, overlay: own, crds: [{tool: b, path: c, url: '" + url + "/kind.yaml'}]}\n",
		"terragrunt/laid/Chart.yaml": "version: 0.0.0\n", // mends what a module lacks, not what a repository has
		"terragrunt/own/Chart.yaml":  "version: 3.0.0\n",
	})
	dest := t.TempDir()
	if err := FetchAll(t.Context(), p.terragrunt, dest); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"one/Chart.yaml": "version: 1.0.0\n", "one/templates/x": "x", "own/Chart.yaml": "version: 3.0.0\n", "own/crds/b/kind.yaml": "kind",
	} {
		if got, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestAChartThatCannotBeFetchedIsNamedAndLeavesNothing(t *testing.T) {
	url := repository(t, map[string][]byte{
		"/index.yaml": []byte("entries:\n  old: [{version: 2.0.0, urls: [old.tgz]}]\n  lies: [{version: 1.0.0, urls: [lies.tgz]}]\n" +
			"  out: [{version: 1.0.0, urls: [out.tgz]}]\n  gone: [{version: 1.0.0, urls: [gone.tgz]}]\n"),
		"/lies.tgz": archive(t, map[string]string{"lies/Chart.yaml": "version: 1.0.1\n"}),
		"/out.tgz":  archive(t, map[string]string{"out/../../../escaped": "x"}),
	})
	for name, want := range map[string]string{
		"old":  "has no version 1.0.0 of it",
		"lies": "it is of version 1.0.1, but charts.yaml pins 1.0.0",
		"gone": "404 Not Found",
		"out":  "path escapes",
	} {
		p := newProject(t, map[string]string{"terragrunt/charts.yaml": "charts:\n  " + name + ": {version: 1.0.0, repository: '" + url + "'}\n"})
		dest := filepath.Join(t.TempDir(), "charts")
		err := FetchAll(t.Context(), p.terragrunt, dest)
		if err == nil || !strings.Contains(err.Error(), "chart "+name+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
		if _, err := os.Stat(filepath.Join(dest, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s left a folder: %v", name, err)
		}
		for _, outside := range []string{filepath.Join(dest, "escaped"), filepath.Join(filepath.Dir(dest), "escaped")} {
			if _, err := os.Stat(outside); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s wrote outside of its folder: %v", name, err)
			}
		}
	}
}
