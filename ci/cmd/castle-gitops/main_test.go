package main

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tazlab.net/castle/ci/base/gitserver"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"castle-gitops": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
			if err != nil {
				return err
			}
			folder := filepath.Join(e.WorkDir, "blue")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, "cluster.yaml"), text, 0o644); err != nil {
				return err
			}
			return emptyRemote(e)
		},
	})
}

const tokenOfScripts = "canary-7f3a9c1d"

// emptyRemote gives a script an empty repository, $REMOTE, and the token that opens it, $TOKEN.
func emptyRemote(e *testscript.Env) error {
	root := filepath.Join(e.WorkDir, "git")
	if err := gitserver.InitBare(e.T().(testing.TB).Context(), filepath.Join(root, "cluster.git"), "main"); err != nil {
		return err
	}
	handler, err := gitserver.New(gitserver.Options{Root: root, Token: tokenOfScripts})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	e.Defer(server.Close)
	e.Setenv("REMOTE", server.URL+"/cluster.git")
	e.Setenv("TOKEN", tokenOfScripts)
	return nil
}
