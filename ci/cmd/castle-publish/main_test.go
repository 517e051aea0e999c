package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"castle-publish": main,
		"base":           writeBase,
		"inspect":        inspectImage,
		"hides":          hides,
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
			return tellsAll(e)
		},
	})
}

// tellsAll gives a script a Git server and registry, $SERVER, that repeats in its errors whatever it was sent, in all forms
// that a proxy or a server in debug mode may choose, and the secrets that it must not be heard to repeat.
func tellsAll(e *testscript.Env) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		if !given {
			w.Header().Set("WWW-Authenticate", `Basic realm="all"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		quoted, _ := json.Marshal(password)
		told := fmt.Sprintf("error: who is %s with %q, %x, %X, %s, %s, %s? %s", user, password, password, password, quoted,
			url.QueryEscape(password), strings.ToLower(url.PathEscape(password)), r.Header.Get("Authorization"))
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": told}}})
			return
		}
		http.Error(w, told, http.StatusForbidden) // text/plain, which git shows
	}))
	e.Defer(server.Close)
	e.Setenv("SERVER", strings.TrimPrefix(server.URL, "http://"))
	e.Setenv("SECRET", secretOfScripts)
	return nil
}

// secretOfScripts is the git token and the password of the registry.
const secretOfScripts = `canary/7f3a"9c<1d>`

// hides makes sure that there was a secret of the scripts in what was printed, and that it is not shown: hides FILE...
func hides() {
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		exitOn(err)
		if len(text) == 0 || !strings.Contains(string(text), redact.Mark) {
			exitOn(fmt.Errorf("%s was to hold something, and a secret in it: %q", name, text))
		}
		encoded := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + secretOfScripts))
		for _, part := range []string{"canary", "7f3a", "9c<1d", "9c%3c", "9c%3C", hex.EncodeToString([]byte("canary")), encoded[24:40],
			base64.StdEncoding.EncodeToString([]byte("robot:" + secretOfScripts))[8:24]} {
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(part)) {
				exitOn(fmt.Errorf("%s shows %s: %s", name, part, text))
			}
		}
	}
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
	fmt.Printf("home %s\n", homeOf(layers[1:])) // the first is the base's
}

// homeOf is the path of the site's home page.
func homeOf(layers []v1.Layer) (home string) {
	for _, layer := range layers {
		content, err := layer.Uncompressed() // as it is in the archive, by the first layer
		exitOn(err)
		plain, err := gzip.NewReader(content)
		exitOn(err)
		for archive := tar.NewReader(plain); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			exitOn(err)
			if path.Base(header.Name) == "index.html" && (home == "" || len(header.Name) < len(home)) {
				home = header.Name
			}
		}
		exitOn(content.Close())
	}
	return home
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
