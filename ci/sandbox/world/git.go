//go:build linux

package world

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"

	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/sandbox/profile"
)

//go:embed all:gitops
var gitopsFiles embed.FS

// serveGit serves the GitOps repository: over TLS as Flux reads it, and without for a publisher who does not know the
// world's authority.
func (w *world) serveGit(ctx context.Context) error {
	folder := filepath.Join(w.Dir, "git")
	if err := w.seedRepository(ctx, filepath.Join(folder, w.seed.Git.Repository+".git")); err != nil {
		return err
	}
	options := gitserver.Options{Root: folder, Token: w.seed.Git.Token, ReadToken: w.seed.Git.ReadToken}
	handler, err := gitserver.New(options)
	if err == nil && w.Profile.Faults.Has(profile.FluxNoSecret) {
		handler, err = refusingFlux(handler, options)
	}
	if err != nil {
		return err
	}
	certificate, err := certificate(w.ca, w.places.git.Addr())
	if err != nil {
		return err
	}
	if err := w.serve(w.places.git, certificate, &http.Server{Handler: handler}); err != nil {
		return err
	}
	return w.serve(netip.AddrPortFrom(w.places.git.Addr(), 80), nil, &http.Server{Handler: handler})
}

// refusingFlux refuses what Flux has like any other wrong token, and lets Git itself in with the same: as a host does whose list of addresses
// has the operator's and not the cluster's. Flux's controllers call themselves git/1.0 (go-git v5, plumbing/transport/http/common.go).
func refusingFlux(handler http.Handler, options gitserver.Options) (http.Handler, error) {
	options.ReadToken = ""
	refusing, err := gitserver.New(options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "git/2.") {
			handler.ServeHTTP(w, r)
		} else {
			refusing.ServeHTTP(w, r)
		}
	}), err
}

// seedRepository makes the repository, unless it is there from an earlier life. It appears under its name when it is
// complete.
func (w *world) seedRepository(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := w.repositoryFiles()
	if err != nil {
		return err
	}
	half := dir + ".new"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if err := gitserver.InitBare(ctx, half, w.cluster.GitOps.Branch); err != nil {
		return err
	}
	if w.seed.Git.Empty {
		return os.Rename(half, dir)
	}
	if _, err := gitserver.Seed(ctx, half, w.cluster.GitOps.Branch, gitserver.Commit{Message: "Start the GitOps repository", Files: files}); err != nil {
		return err
	}
	return os.Rename(half, dir)
}

// repositoryFiles are the embedded ones under the path of this cluster, with this world's registry.
func (w *world) repositoryFiles() (fs.FS, error) {
	made := fstest.MapFS{}
	err := fs.WalkDir(gitopsFiles, "gitops", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := gitopsFiles.ReadFile(name)
		if err != nil {
			return err
		}
		below, _ := filepath.Rel("gitops", name)
		if rest, inCluster := strings.CutPrefix(below, "cluster/"); inCluster {
			below = path.Join(w.cluster.GitOps.Path, rest)
		}
		data = bytes.ReplaceAll(data, []byte("registry.invalid"), []byte(w.seed.Registry.String()))
		made[below] = &fstest.MapFile{Data: data, Mode: 0o644}
		return nil
	})
	return made, err
}
