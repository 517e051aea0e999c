package mirror

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/setup/images"
)

// Labels in the configuration of every stand-in, and by inheritance of what is built on it.
const (
	LabelStandIn  = "net.tazlab.castle.stand-in"           // the image it stands for: name and tag
	LabelMadeFrom = "net.tazlab.castle.stand-in.made-from" // "Debian bookworm, git 1:2.39.5-0+deb12u2, …"
	LabelInputs   = "net.tazlab.castle.stand-in.inputs"    // digest of all that decided what is in it
)

// generation counts changes of how stand-ins are put together; raising it makes all of them anew.
const generation = 1

const debianPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// recipe is how one kind of stand-in is made: a Debian root with packages, or none, more layers, and a configuration like that
// of the image it stands for.
type recipe struct {
	packages []string // recipes with the same packages share the root's layer; none, no root
	tools    []string // recipes of ci/setup/gotool that contents are made from
	config   v1.Config
	contents []contentOf
}

type contentOf func(ctx context.Context, b *builder, image images.Image) (content, error)

// content is a layer of a stand-in above its root.
type content struct {
	inputs   string // what decides the layer's bytes; equal inputs and madeFrom, equal bytes
	madeFrom string // for a person
	write    func(context.Context, layerWriter) error
}

// name is the same for equal contents.
func (c content) name() string { return digestOf(generation, c.madeFrom, c.inputs) }

// toolPackages are what the golang and hugo images have from Debian that pipelines use.
var toolPackages = []string{"ca-certificates", "git", "openssh-client"}

var recipes = map[string]recipe{
	images.StandInGolang: {
		packages: toolPackages,
		config: v1.Config{
			// No C compiler, so no cgo. Otherwise as the official image has it.
			Env: []string{"PATH=/go/bin:/usr/local/go/bin:" + debianPath, "GOTOOLCHAIN=local", "GOPATH=/go",
				"CGO_ENABLED=0"},
			WorkingDir: "/go",
			Cmd:        []string{"bash"},
		},
		contents: []contentOf{goContent},
	},
	// As the official image is built, with its entry point: Hugo's extended edition, Go for Hugo modules, Node.js with npm
	// and Dart Sass, at the same places. Its user hugo is missing; this one runs as root.
	images.StandInHugo: {
		packages: toolPackages,
		config: v1.Config{
			Env: []string{"PATH=" + dartSass + ":/var/hugo/bin:/go/bin:/usr/local/go/bin:" + debianPath, "GOTOOLCHAIN=local",
				"GOPATH=/go", "HUGO_CACHEDIR=/cache"},
			WorkingDir:   "/project",
			Entrypoint:   []string{"/entrypoint.sh"},
			Cmd:          []string{"--help"},
			ExposedPorts: map[string]struct{}{"1313/tcp": {}},
		},
		contents: []contentOf{hugoGoContent, nodeContent, hugoContent},
	},
	// Debian's nginx, which is older than the image's, with Debian's configuration: whoever builds on it brings his own
	// nginx.conf. Its unprivileged user is www-data, not nginx.
	images.StandInNginx: {
		packages: []string{"ca-certificates", "nginx"},
		config: v1.Config{
			Env:          []string{"PATH=" + debianPath},
			Cmd:          []string{"nginx", "-g", "daemon off;"},
			ExposedPorts: map[string]struct{}{"80/tcp": {}},
			StopSignal:   "SIGQUIT",
		},
		contents: []contentOf{nginxContent},
	},
	// Debian's Chromium, a whole browser that needs --headless to be one without a window, at the place that the official
	// image has its program; not that image's entry point, which listens for a debugger.
	images.StandInChromium: {
		packages: []string{"ca-certificates", "chromium", "fonts-dejavu-core"},
		config: v1.Config{
			Env:        []string{"PATH=/headless-shell:" + debianPath},
			Entrypoint: []string{"/headless-shell/headless-shell"},
		},
		contents: []contentOf{chromiumContent},
	},
}

// recipeOf is the recipe of an image's stand-in.
func recipeOf(image images.Image) (recipe, error) {
	if image.StandIn == images.StandInTool {
		if tool, ok := toolImages[image.Key]; ok {
			return tool.recipe(), nil
		}
	} else if r, ok := recipes[image.StandIn]; ok {
		if image.StandIn == images.StandInHugo {
			r.tools = []string{image.Key}
		}
		return r, nil
	}
	return recipe{}, fmt.Errorf("%s: there is no stand-in of the kind %q for it", image.Key, image.StandIn)
}

// Tools are the recipes of ci/setup/gotool that the stand-ins of these images are made from, in the order in which Build
// asks for them. An image that has no stand-in needs none.
func Tools(list images.List) []string {
	var tools []string
	for _, image := range list {
		r, err := recipeOf(image)
		if err != nil {
			continue
		}
		for _, tool := range r.tools {
			if !slices.Contains(tools, tool) {
				tools = append(tools, tool)
			}
		}
	}
	return tools
}

func goContent(_ context.Context, b *builder, image images.Image) (content, error) {
	version := goVersion.FindString(image.Tag)
	if version == "" {
		return content{}, fmt.Errorf("tag %s does not start with a Go version", image.Tag)
	}
	trusted, err := b.trusted()
	if err != nil {
		return content{}, err
	}
	return content{
		inputs:   version + trusted,
		madeFrom: "Go " + version + " from the module proxy",
		write: func(ctx context.Context, layer layerWriter) error {
			if err := b.trust(layer); err != nil {
				return err
			}
			folder, err := b.toolchain(ctx, version, b.arch)
			if err != nil {
				return err
			}
			for _, name := range []string{"go", "go/bin", "go/src"} {
				if err := layer.folder(name, 0o1777); err != nil {
					return err
				}
			}
			return layer.tree("usr/local/go", folder, goFile)
		},
	}, nil
}

// hugoGoContent is the layer of the golang stand-in: one Go for all.
func hugoGoContent(ctx context.Context, b *builder, _ images.Image) (content, error) {
	golang, err := b.List.Get("golang")
	if err != nil {
		return content{}, err
	}
	return goContent(ctx, b, golang)
}

const hugoModule = "github.com/gohugoio/hugo"

// hugoContent is the tool that the entry's key names: hugo, or hugo in another version.
func hugoContent(ctx context.Context, b *builder, image images.Image) (content, error) {
	if b.Tools == nil {
		return content{}, errors.New("nothing was given that builds hugo")
	}
	binaries, err := b.Tools(ctx, image.Key)
	if err != nil {
		return content{}, err
	}
	binary := binaries["hugo"]
	if binary == "" {
		return content{}, fmt.Errorf("the tool %s has no program hugo", image.Key)
	}
	version, err := b.version(binary, hugoModule)
	if err != nil {
		return content{}, err
	}
	if version != image.Tag {
		return content{}, fmt.Errorf("the program built is hugo %s, but images.yaml wants %s: bring the recipe of the tool and images.yaml to one version",
			version, image.Tag)
	}
	sum, err := fileSum(binary)
	if err != nil {
		return content{}, err
	}
	entry := filepath.Join(filepath.Dir(binary), "entrypoint.sh")
	addEntry := func(layer layerWriter) error { return layer.file("entrypoint.sh", 0o755, entry) }
	entrySum, err := fileSum(entry)
	if errors.Is(err, fs.ErrNotExist) { // an old release has none
		addEntry, err = func(layer layerWriter) error { return layer.link("entrypoint.sh", "usr/bin/hugo") }, nil
	}
	if err != nil {
		return content{}, err
	}
	return content{
		inputs:   sum + entrySum,
		madeFrom: "Hugo " + version + " from Go modules, extended edition",
		write: func(_ context.Context, layer layerWriter) error {
			return errors.Join(layer.folder("project", 0o755), layer.folder("cache", 0o1777),
				layer.file("usr/bin/hugo", 0o755, binary), addEntry(layer))
		},
	}, nil
}

// certificates is the list of trusted CA certificates, at the same place here and in a stand-in.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// trusted is the digest of this machine's list, empty where stand-ins keep Debian's own.
func (b *builder) trusted() (string, error) {
	if b.certificates == "" {
		return "", nil
	}
	return fileSum(b.certificates)
}

// trust gives a stand-in that downloads this machine's list of CA certificates: a machine that cannot pull often reaches
// what it can reach through a proxy with a certificate of its own.
func (b *builder) trust(layer layerWriter) error {
	if b.certificates == "" {
		return nil
	}
	return layer.file(certificates, 0o644, b.certificates)
}

func nginxContent(context.Context, *builder, images.Image) (content, error) {
	return content{
		madeFrom: "nginx from Debian",
		write: func(_ context.Context, layer layerWriter) error {
			// As the official image does, so that a container's logs are where they are looked for.
			return errors.Join(
				layer.link("var/log/nginx/access.log", "/dev/stdout"),
				layer.link("var/log/nginx/error.log", "/dev/stderr"),
			)
		},
	}, nil
}

func chromiumContent(context.Context, *builder, images.Image) (content, error) {
	return content{
		madeFrom: "Chromium from Debian",
		write: func(_ context.Context, layer layerWriter) error {
			return layer.link("headless-shell/headless-shell", "/usr/bin/chromium")
		},
	}, nil
}

// moduleVersion reads from a Go program which version of a module is in it.
func moduleVersion(binary, module string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("read what %s was built from: %w", binary, err)
	}
	version := versionIn(info, module)
	if version == "" {
		return "", fmt.Errorf("%s was not built from %s", binary, module)
	}
	return version, nil
}

// versionIn looks for the module as the program's own and among its dependencies: a tool may be built either way.
func versionIn(info *buildinfo.BuildInfo, module string) string {
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return ""
}

func fileSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
