package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"castle-publish": main,
		"base":           writeBase,
		"inspect":        inspectImage,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// Commits of the scripts are those of yesterday and of another machine.
			for _, variable := range []string{"AUTHOR", "COMMITTER"} {
				e.Setenv("GIT_"+variable+"_NAME", "Author")
				e.Setenv("GIT_"+variable+"_EMAIL", "author@example.org")
				e.Setenv("GIT_"+variable+"_DATE", "2026-01-02T03:04:05Z")
			}
			e.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			return nil
		},
	})
}

// writeBase writes an image in nginx's shape as a layout: base FOLDER ARCHITECTURE.
func writeBase() {
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("a layer of the base"), types.DockerLayer))
	exitOn(err)
	config, err := image.ConfigFile()
	exitOn(err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", os.Args[2]
	config.Config = v1.Config{Cmd: []string{"nginx"}, Env: []string{"PATH=/usr/sbin:/usr/bin"}}
	image, err = mutate.ConfigFile(image, config)
	exitOn(err)
	exitOn(ocilayout.Write(os.Args[1], image))
}

// inspectImage prints what a Docker archive holds: inspect FILE.
func inspectImage() {
	image, err := tarball.ImageFromPath(os.Args[1], nil)
	exitOn(err)
	config, err := image.ConfigFile()
	exitOn(err)
	layers, err := image.Layers()
	exitOn(err)
	fmt.Printf("platform %s\nuser %q\nlayers %d\n", config.Platform(), config.Config.User, len(layers))
	for port := range config.Config.ExposedPorts {
		fmt.Printf("port %s\n", port)
	}
	for _, label := range []string{"revision", "source", "created", "base.name", "base.digest"} {
		fmt.Printf("%s %s\n", label, config.Config.Labels["org.opencontainers.image."+label])
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
