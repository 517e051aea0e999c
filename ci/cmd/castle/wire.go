package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
)

// host is what the commands for a user's machine share: the cache folder, the list of images, and whether a mirror of
// stand-ins is needed.
type host struct {
	cache  string
	images string
	mirror string
	groups []string
	hugo   []string // other versions than the list's, without v
	// build makes stand-ins of images; nil: mirror.Build.
	build func(context.Context, mirror.BuildOptions) ([]mirror.Built, error)
}

// The values of --mirror.
const (
	mirrorAuto   = "auto"
	mirrorAlways = "always"
	mirrorNever  = "never"
)

func (h *host) add(command *cobra.Command) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	flags := command.PersistentFlags()
	flags.StringVar(&h.cache, "cache", filepath.Join(cache, "castle"), "the folder for everything that is built and run")
	flags.StringVar(&h.images, "images", filepath.Join(".dagger", "images.yaml"), "the list of images")
	flags.StringVar(&h.mirror, "mirror", mirrorAuto, "serve stand-in images to an engine of castle's own: auto (where the registries do not answer), always, never")
	flags.StringSliceVar(&h.groups, "group", nil, "also the images of this group of the list, such as create")
}

// otherHugo is the group of the images that addHugo's flag names.
const otherHugo = "other-hugo"

func (h *host) addHugo(command *cobra.Command) {
	command.Flags().StringSliceVar(&h.hugo, "hugo", nil, "also a stand-in of this other version of Hugo, such as 0.148.1")
}

// asked are the groups whose stand-ins are to be made beside those that the engine starts with.
func (h *host) asked() []string {
	if len(h.hugo) == 0 {
		return h.groups
	}
	return append(slices.Clone(h.groups), otherHugo)
}

// withHugo is the list and, for stand-ins alone, the other versions of Hugo: the module pulls these by their tag.
func (h *host) withHugo(list images.List) (images.List, error) {
	list = slices.Clone(list)
	for _, version := range h.hugo {
		image, err := list.Get("hugo")
		if err != nil {
			return nil, err
		}
		tag := "v" + strings.TrimPrefix(version, "v")
		if tag == image.Tag {
			return nil, fmt.Errorf("--hugo %s: that is the version of %s, whose stand-in is made without being asked for", version, h.images)
		}
		image.Key, image.Tag, image.Digest, image.Group = gotool.At("hugo", tag), tag, "", otherHugo
		list = append(list, image)
	}
	return list, nil
}

func (h *host) mirrorCache() string { return filepath.Join(h.cache, "mirror") }

func (h *host) tools(log io.Writer) gotool.Builder {
	return gotool.Builder{Cache: filepath.Join(h.cache, "tools"), Install: debian.Install, Log: log}
}

func (h *host) list() (images.List, error) {
	list, err := images.Load(h.images)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; run castle in its repository, or name the list with --images", err)
	}
	return list, err
}

// wantsMirror settles --mirror=auto by asking the registries of the images that are wanted.
func (h *host) wantsMirror(ctx context.Context, list images.List) (bool, error) {
	switch h.mirror {
	case mirrorAlways, mirrorNever:
		return h.mirror == mirrorAlways, nil
	case mirrorAuto:
		wanted, err := list.In(h.groups...)
		if err != nil {
			return false, err
		}
		var registries []string
		for _, image := range wanted {
			if image.StandIn != images.StandInNone && !slices.Contains(registries, image.Registry()) {
				registries = append(registries, image.Registry())
			}
		}
		return !setup.RegistriesAnswer(ctx, registries...), nil
	default:
		return false, fmt.Errorf("--mirror=%s: want auto, always or never", h.mirror)
	}
}

// startsNothing spares a command the question whether the registries answer, which takes many seconds where the network
// is bad: only a start depends on it.
func (h *host) startsNothing(command *cobra.Command) *cobra.Command {
	command.PreRun = func(*cobra.Command, []string) {
		if h.mirror == mirrorAuto {
			h.mirror = mirrorNever
		}
	}
	return command
}

// buildMirror makes the stand-ins of what publishing pulls, and of the groups.
func (h *host) buildMirror(ctx context.Context, list images.List, groups []string, rebuild bool, log io.Writer) ([]mirror.Built, error) {
	build := h.build
	if build == nil {
		build = mirror.Build
		if err := debian.Install(ctx, "mmdebstrap", "debian-archive-keyring"); err != nil {
			return nil, err
		}
	}
	wanted, err := h.withHugo(list)
	if err != nil {
		return nil, err
	}
	tools := h.tools(log)
	if err := announce(tools, wanted, groups, log); err != nil {
		return nil, err
	}
	batch := tools.Batch()
	defer batch.Close()
	built, err := build(ctx, mirror.BuildOptions{
		Cache: h.mirrorCache(), List: wanted, Groups: groups, Rebuild: rebuild, Log: log,
		Tools: batch.Build,
	})
	return built, errors.Join(err, h.pinStandIns(ctx, list))
}

// pinStandIns has the module pull the stand-ins of the cache.
func (h *host) pinStandIns(ctx context.Context, list images.List) error {
	local, err := mirror.Local(ctx, h.mirrorCache(), list)
	if err != nil {
		return err
	}
	return local.WriteBeside(h.images)
}

// pin has the module called beside the list pull what the plan's engine can pull. Other clones may have made its mirror,
// and another engine may have been the last one here, so that this is done whether or not anything was made. What an
// engine that is not castle's own pulls from is not known here: what the file says for it, a person had written.
func (h *host) pin(ctx context.Context, plan setup.Plan, own daggerengine.Engine, log io.Writer) error {
	mine, err := uses(ctx, plan, own)
	switch {
	case err != nil:
		return err
	case !mine:
		if file := filepath.Join(filepath.Dir(h.images), images.LocalFile); exists(file) {
			fmt.Fprintf(log, "%s has the module pull from a mirror: remove it unless this engine has that mirror\n", file)
		}
		return nil
	case h.mirror != mirrorAlways:
		return images.Local{}.WriteBeside(h.images)
	}
	list, err := h.list()
	if err != nil {
		return err
	}
	return h.pinStandIns(ctx, list)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// uses tells whether the plan's engine is castle's own.
func uses(ctx context.Context, plan setup.Plan, own daggerengine.Engine) (bool, error) {
	if plan.Kind != setup.Named {
		return plan.Kind == setup.Built, nil
	}
	status, err := own.Status(ctx)
	return err == nil && status.Host == os.Getenv(setup.RunnerHost), err
}

// announce says what is to be built from Go modules for the stand-ins, and how long that takes.
func announce(tools gotool.Builder, list images.List, groups []string, log io.Writer) error {
	wanted, err := list.In(groups...)
	if err != nil {
		return err
	}
	missing, err := tools.Missing(mirror.Tools(wanted)...)
	if err != nil || len(missing) < 2 { // one says it itself
		return err
	}
	fmt.Fprintf(log, "%d tools are to be built from Go modules, once: %s. After an interruption the next call goes on with the tool that was under way.\n",
		len(missing), tools.Estimate(missing...))
	for _, recipe := range missing {
		fmt.Fprintf(log, "  %-21s %s\n", recipe.Name, tools.Estimate(recipe))
	}
	return nil
}

// engine is castle's own engine, of which only Up builds anything. It settles whether there is a mirror.
func (h *host) engine(ctx context.Context, log io.Writer) (daggerengine.Engine, error) {
	list, err := h.list()
	if err != nil {
		return daggerengine.Engine{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return daggerengine.Engine{}, err
	}
	listFile, err := filepath.Abs(h.images)
	if err != nil {
		return daggerengine.Engine{}, err
	}
	mirrored, err := h.wantsMirror(ctx, list)
	if err != nil {
		return daggerengine.Engine{}, err
	}
	h.mirror = mirrorNever
	if mirrored {
		h.mirror = mirrorAlways
	}
	return daggerengine.Engine{
		Cache:   h.cache,
		Install: debian.Install,
		Toolchain: func(ctx context.Context) (v1.Image, error) {
			if mirrored {
				return h.mirroredToolchain(ctx, list, log)
			}
			return pull(ctx, list, "", name.WeakValidation)
		},
		Supervisor:   []string{program, "engine", "run", "--cache=" + h.cache, "--images=" + listFile, "--mirror=" + h.mirror},
		SupervisorID: "mirror=" + h.mirror,
		Log:          log,
	}, nil
}

// mirroredToolchain builds the stand-ins that publishing needs and returns the one for Go. Its layers are read through
// the mirror, which is served as long as ctx lives. The groups' stand-ins can take most of an hour and are no reason for
// the engine to wait: addGroups makes them while it runs.
func (h *host) mirroredToolchain(ctx context.Context, list images.List, log io.Writer) (v1.Image, error) {
	if _, err := h.buildMirror(ctx, list, nil, false, log); err != nil {
		return nil, err
	}
	addresses := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- mirror.Serve(ctx, mirror.ServeOptions{
			Cache: h.mirrorCache(), Addr: "127.0.0.1:0", Ready: func(address net.Addr) { addresses <- address },
		})
	}()
	select {
	case address := <-addresses:
		return pull(ctx, list, address.String(), name.Insecure)
	case err := <-ended:
		return nil, err
	}
}

// pull returns the image that Go code is compiled in, from a mirror or, when that is empty, from its own registry.
func pull(ctx context.Context, list images.List, mirror string, options ...name.Option) (v1.Image, error) {
	image, err := list.Get("golang")
	if err != nil {
		return nil, err
	}
	text := image.Pinned()
	if mirror != "" {
		text = mirror + "/" + image.Repository() + ":" + image.Tag
	}
	reference, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, err
	}
	return remote.Image(reference, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
}
