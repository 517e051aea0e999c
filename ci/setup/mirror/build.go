package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/images"
)

// BuildOptions say which stand-ins to make and where to keep them.
type BuildOptions struct {
	// Cache is the folder that keeps the mirror: the registry that Serve serves, and the layers that stand-ins share.
	Cache string
	List  images.List
	// Groups are those of the list that are wanted, beside the entries without one.
	Groups []string
	// Tools builds a tool from Go modules, or finds it built, and maps its programs to their paths. Asked for the keys of
	// Hugo's stand-ins and for what the stand-ins of tools hold.
	Tools func(ctx context.Context, name string) (map[string]string, error)
	// Rebuild makes everything anew, for instance to take in Debian's security updates.
	Rebuild bool
	Log     io.Writer // progress, a line per step; nil discards it
}

// Built tells of one stand-in of the list.
type Built struct {
	Image  images.Image
	Digest string        // of the stand-in's manifest, "sha256:…"
	Size   int64         // of its layers as they are sent, bytes
	Made   bool          // false: it was there already
	Took   time.Duration // zero where it was there already
}

// Build makes those stand-ins of the list that the cache lacks, for this machine's architecture; entries without one
// are left out of the result. A stand-in is made anew when its image's name or tag, its recipe or a tool in it changed,
// not when Debian's archive did. The same inputs and the same package versions give the same digests.
//
// All stand-ins that can be made are made, and the error joins what kept the others from it. It needs root, Debian and
// Go only where something is to be made; a *debian.UnfitError says what the machine lacks. One Build works on a cache at a
// time; another waits for it.
func Build(ctx context.Context, opts BuildOptions) ([]Built, error) {
	b := &builder{
		BuildOptions: opts, arch: runtime.GOARCH,
		debian: debian.Root, toolchain: goToolchain, npm: npmPackages, version: moduleVersion,
	}
	if _, err := os.Stat("/" + certificates); err == nil {
		b.certificates = "/" + certificates
	}
	return b.build(ctx)
}

// builder is one call of Build, with what it reaches out to.
type builder struct {
	BuildOptions
	arch      string
	debian    func(ctx context.Context, dest string, packages []string, opts debian.Options) (map[string]string, error)
	toolchain func(ctx context.Context, version, arch string) (folder string, err error)
	npm       func(ctx context.Context, folder string) error
	version   func(binary, module string) (string, error)

	certificates string // this machine's list of CA certificates; "" where it has none

	address address             // of the registry on the cache, while building
	fresh   map[string]bool     // roots made by this call
	written map[string]v1.Layer // contents made by this call, by what decides their bytes; their files last as long
}

func (b *builder) layers() string { return filepath.Join(b.Cache, "layers") }

func (b *builder) say(format string, args ...any) { say(b.Log, format, args...) }

func say(log io.Writer, format string, args ...any) {
	if log != nil {
		fmt.Fprintf(log, format+"\n", args...)
	}
}

func (b *builder) build(ctx context.Context) ([]Built, error) {
	if err := distinct(b.List); err != nil {
		return nil, err
	}
	wanted, err := b.List.In(b.Groups...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.layers(), 0o755); err != nil {
		return nil, fmt.Errorf("the mirror's cache: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(b.Cache, "build.lock"), b.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	if err := b.prune(); err != nil {
		return nil, fmt.Errorf("the mirror's cache: %w", err)
	}
	stop, err := b.registry()
	if err != nil {
		return nil, err
	}
	defer stop()

	b.fresh, b.written = map[string]bool{}, map[string]v1.Layer{}
	defer func() {
		for name := range b.written {
			_ = os.Remove(b.contentFile(name))
		}
	}()
	var done []Built
	var failed []error
	for _, image := range wanted {
		if image.StandIn == images.StandInNone {
			continue
		}
		recipe, err := recipeOf(image)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		built, err := b.standIn(ctx, image, recipe)
		if ctx.Err() != nil {
			return done, fmt.Errorf("stand-in for %s: %w", image.Reference(), context.Cause(ctx))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("stand-in for %s: %w", image.Reference(), err))
			continue
		}
		done = append(done, built)
	}
	return done, errors.Join(failed...)
}

// registry serves the cache's registry to this process alone while it builds.
func (b *builder) registry() (stop func(), err error) {
	b.address, stop, err = serveToSelf(b.Cache, false, b.Log)
	return stop, err
}

// serveToSelf serves a cache's registry to this process alone until stop is called: the same handler that Serve uses, so
// that how a registry is laid out on disk is nobody else's business.
func serveToSelf(cache string, readOnly bool, log io.Writer) (at address, stop func(), err error) {
	handler, err := registryHandler(cache, readOnly, log)
	if err != nil {
		return address{}, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return address{}, nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // its one error is that it was closed, by stop
	return address{host: listener.Addr().String(), plain: true}, func() { _ = server.Close() }, nil
}

// standIn finds the stand-in for image in the registry, or makes it and pushes it there.
func (b *builder) standIn(ctx context.Context, image images.Image, recipe recipe) (Built, error) {
	start := time.Now()
	contents := make([]content, len(recipe.contents))
	inputs, madeFrom := []string{}, []string{}
	for i, of := range recipe.contents {
		var err error
		if contents[i], err = of(ctx, b, image); err != nil {
			return Built{}, err
		}
		inputs, madeFrom = append(inputs, contents[i].name()), append(madeFrom, contents[i].madeFrom)
	}
	digest := digestOf(generation, image.Reference(), b.arch, b.rootName(recipe.packages), recipe.config, inputs)
	tag, err := b.address.tag(image)
	if err != nil {
		return Built{}, err
	}
	if !b.Rebuild {
		if there, err := remote.Image(tag, remote.WithContext(ctx)); err == nil {
			if config, err := there.ConfigFile(); err == nil && config.Config.Labels[LabelInputs] == digest {
				return describe(image, there)
			}
		} else if !notFound(err) {
			return Built{}, err
		}
	}
	base, err := b.root(ctx, recipe.packages)
	if err != nil {
		return Built{}, err
	}
	b.say("making the stand-in for %s", image.Reference())
	layers := make([]v1.Layer, len(contents))
	for i, content := range contents {
		if layers[i], err = b.layer(ctx, content); err != nil {
			return Built{}, err
		}
	}
	config := recipe.config
	config.Labels = map[string]string{
		LabelStandIn:  image.Reference(),
		LabelMadeFrom: base.madeFrom(recipe.packages) + strings.Join(madeFrom, ", "),
		LabelInputs:   digest,
	}
	made, err := b.assemble(config, base.layer, layers)
	if err != nil {
		return Built{}, err
	}
	if err := remote.Write(tag, made, remote.WithContext(ctx)); err != nil {
		return Built{}, err
	}
	built, err := describe(image, made)
	built.Made, built.Took = true, time.Since(start)
	b.say("made the stand-in for %s in %s: %s, %d MB", image.Reference(), built.Took.Round(100*time.Millisecond), built.Digest, built.Size/1e6)
	return built, err
}

// layer writes a content, unless another stand-in of this call has the same.
func (b *builder) layer(ctx context.Context, content content) (v1.Layer, error) {
	name := content.name()
	if layer, ok := b.written[name]; ok {
		return layer, nil
	}
	file := b.contentFile(name)
	if err := writeLayer(file, func(layer layerWriter) error { return content.write(ctx, layer) }); err != nil {
		return nil, err
	}
	layer, err := openLayer(file)
	if err == nil {
		b.written[name] = layer
	}
	return layer, err
}

func (b *builder) contentFile(name string) string {
	return filepath.Join(b.layers(), "content-"+name[:16]+".tar.gz")
}

// assemble puts the layers together; base is nil where there is none.
func (b *builder) assemble(config v1.Config, base v1.Layer, contents []v1.Layer) (v1.Image, error) {
	created := v1.Time{Time: time.Unix(debian.Epoch, 0).UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: b.arch, OS: "linux", Created: created, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	if base != nil {
		layers = append(layers, mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "castle mirror build: Debian root"}})
	}
	for _, content := range contents {
		layers = append(layers, mutate.Addendum{Layer: content, History: v1.History{Created: created, CreatedBy: "castle mirror build: content"}})
	}
	return mutate.Append(image, layers...)
}

func describe(image images.Image, made v1.Image) (Built, error) {
	digest, err := made.Digest()
	if err != nil {
		return Built{}, err
	}
	manifest, err := made.Manifest()
	if err != nil {
		return Built{}, err
	}
	built := Built{Image: image, Digest: digest.String()}
	for _, layer := range manifest.Layers {
		built.Size += layer.Size
	}
	return built, nil
}

// digestOf is a digest over values as JSON, in hexadecimal.
func digestOf(values ...any) string {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(values); err != nil {
		panic(err) // only values that JSON can hold come here
	}
	return hex.EncodeToString(sum.Sum(nil))
}
