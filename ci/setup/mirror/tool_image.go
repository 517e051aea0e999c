package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/setup/images"
)

// program is a tool's program and its place in an image.
type program struct {
	tool string // recipe of ci/setup/gotool
	name string
	at   string // "usr/local/bin/etcd"
}

// toolImage is a stand-in with nothing but programs, where the official image has them.
type toolImage struct {
	module   string // whose version, in the first program, is the image's tag
	programs []program
	links    map[string]string // symbolic links and their targets
	files    []string          // tools of which all that is kept beside the programs comes in, as toolsFolder/<tool>
	config   v1.Config
}

// toolImages are the stand-ins of kind StandInTool by their entries' keys. What official images have beside the program
// (a shell, a wrapper that redirects logs) is missing, and so is their unprivileged user.
var toolImages = map[string]toolImage{
	"etcd":                    oneProgram("go.etcd.io/etcd/server/v3", "etcd", "etcd", "usr/local/bin/etcd").command("etcd"),
	"kube-apiserver":          oneProgram(kubernetes, "kubernetes", "kube-apiserver", "usr/local/bin/kube-apiserver").command("kube-apiserver"),
	"kube-controller-manager": oneProgram(kubernetes, "kubernetes", "kube-controller-manager", "usr/local/bin/kube-controller-manager").command("kube-controller-manager"),
	"kube-scheduler":          oneProgram(kubernetes, "kubernetes", "kube-scheduler", "usr/local/bin/kube-scheduler").command("kube-scheduler"),
	"metallb-controller":      oneProgram("go.universe.tf/metallb", "metallb", "controller", "controller").entry("/controller"),
	"external-secrets": oneProgram("github.com/external-secrets/external-secrets", "external-secrets", "external-secrets",
		"bin/external-secrets").entry("/bin/external-secrets"),
	"source-controller":       flux("source-controller"),
	"kustomize-controller":    flux("kustomize-controller"),
	"helm-controller":         flux("helm-controller"),
	"notification-controller": flux("notification-controller"),
	"opentofu":                opentofu(),
}

const kubernetes = "k8s.io/kubernetes"

func oneProgram(module, tool, name, at string) toolImage {
	return toolImage{module: module, programs: []program{{tool: tool, name: name, at: at}}}
}

func flux(name string) toolImage {
	return oneProgram("github.com/fluxcd/"+name, name, name, "usr/local/bin/"+name).entry(name)
}

func (t toolImage) entry(program string) toolImage {
	t.config.Entrypoint = []string{program}
	return t
}

func (t toolImage) command(program string) toolImage {
	t.config.Cmd = []string{program}
	return t
}

// recipe is the toolImage as one of recipes.
func (t toolImage) recipe() recipe {
	config := t.config
	config.Env = []string{"PATH=" + debianPath}
	var tools []string
	for _, program := range t.programs {
		tools = append(tools, program.tool)
	}
	return recipe{config: config, tools: append(tools, t.files...), contents: []contentOf{t.content}}
}

func (t toolImage) content(ctx context.Context, b *builder, image images.Image) (content, error) {
	if b.Tools == nil {
		return content{}, errors.New("nothing was given that builds tools")
	}
	trusted, err := b.trusted()
	if err != nil {
		return content{}, err
	}
	sources := make([]string, len(t.programs))
	inputs := []string{trusted}
	for i, program := range t.programs {
		programs, err := b.Tools(ctx, program.tool)
		if err != nil {
			return content{}, err
		}
		if sources[i] = programs[program.name]; sources[i] == "" {
			return content{}, fmt.Errorf("the tool %s has no program %s", program.tool, program.name)
		}
		sum, err := fileSum(sources[i])
		if err != nil {
			return content{}, err
		}
		inputs = append(inputs, program.at, sum)
	}
	kept := make([]keptFiles, len(t.files))
	for i, tool := range t.files {
		programs, err := b.Tools(ctx, tool)
		if err != nil {
			return content{}, err
		}
		if kept[i], err = filesOf(programs); err != nil {
			return content{}, fmt.Errorf("the tool %s: %w", tool, err)
		}
		inputs = append(inputs, tool, kept[i].sum)
	}
	links := slices.Sorted(maps.Keys(t.links))
	for _, link := range links {
		inputs = append(inputs, link, t.links[link])
	}
	version, err := b.version(sources[0], t.module)
	if err != nil {
		return content{}, err
	}
	if !tagged(image.Tag, version) {
		return content{}, fmt.Errorf("the program built is %s %s, but images.yaml wants %s: bring the recipe of the tool and images.yaml to one version",
			t.programs[0].name, version, image.Tag)
	}
	return content{
		inputs:   strings.Join(inputs, " "),
		madeFrom: t.programs[0].name + " " + version + " from Go modules",
		write: func(ctx context.Context, layer layerWriter) error {
			// Of the folders that every image has, programs expect this one.
			if err := errors.Join(layer.folder("tmp", 0o1777), b.trust(layer)); err != nil {
				return err
			}
			for i, program := range t.programs {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := layer.file(program.at, 0o755, sources[i]); err != nil {
					return err
				}
			}
			for i, tool := range t.files {
				if err := layer.tree(path.Join(toolsFolder, tool), kept[i].folder, kept[i].place); err != nil {
					return err
				}
			}
			for _, link := range links {
				if err := layer.link(link, t.links[link]); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// tagged tells whether a tag is of a module's version, be it without the v or with an addition: 3.6.8-0 of v3.6.8.
func tagged(tag, version string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(tag, "v"), strings.TrimPrefix(version, "v"))
	return ok && (rest == "" || rest[0] == '-')
}

// provider is an OpenTofu provider and the tool it is built by.
type provider struct {
	tool    string
	source  string // without a host
	version string // the release's, which the module's version does not tell where it names a commit
}

// providers are all that the layers use.
var providers = []provider{
	{"provider-helm", "hashicorp/helm", "3.2.0"},
	{"provider-kubectl", "alekc/kubectl", "2.2.0"},
	{"provider-kubernetes", "hashicorp/kubernetes", "3.2.1"},
	{"provider-proxmox", "bpg/proxmox", "0.106.0"},
}

// providersFolder is one of the folders in which OpenTofu and Terraform look for providers before they ask a registry.
const providersFolder = "usr/share/terraform/plugins"

// platformFolder is what they call a platform there.
var platformFolder = "linux_" + runtime.GOARCH

// toolsFolder has a folder for each tool whose kept files are in the image.
const toolsFolder = "usr/share/castle/tools"

// opentofu has beside the official image's program what a machine without a registry cannot download while it runs:
// the providers, for either registry's address, Terragrunt, of which there is no official image, and what the charts of
// the layers are made from.
func opentofu() toolImage {
	image := oneProgram("github.com/opentofu/opentofu", "tofu", "tofu", "usr/local/bin/tofu").entry("/usr/local/bin/tofu")
	image.programs = append(image.programs, program{tool: "terragrunt", name: "terragrunt", at: "usr/local/bin/terragrunt"})
	image.files = []string{"metallb", "external-secrets", "source-controller", "kustomize-controller", "helm-controller", "notification-controller"}
	image.links = map[string]string{}
	for _, p := range providers {
		name := "terraform-" + p.tool + "_v" + p.version
		below := path.Join(p.source, p.version, platformFolder)
		image.programs = append(image.programs, program{
			tool: p.tool, name: "terraform-" + p.tool, at: path.Join(providersFolder, "registry.opentofu.org", below, name),
		})
		image.links[path.Join(providersFolder, "registry.terraform.io", below)] = "../../../../registry.opentofu.org/" + below
	}
	return image
}
