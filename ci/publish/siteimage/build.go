package siteimage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/site/siteheaders"
)

// DefaultPort is where the site is served when Options name no port.
const DefaultPort = 80

// Options describe an image. All but CacheDir decide its digest.
type Options struct {
	Base     v1.Image // holds nginx, 1.22 or later, on the PATH; for one platform
	Site     string   // folder with the finished site; needs an index.html
	Path     string   // below which the site is served, that of its base URL: "/blog/"; "" is "/"
	Language string   // the site's default one; its 404 page answers where the site has none at its root
	Port     int      // 0 is DefaultPort; below 1024 the image runs as root, from there on as UID 65532

	Title      string    // label org.opencontainers.image.title; each label is left out when empty
	Revision   string    // label …revision: the whole SHA of the commit
	Source     string    // label …source: the repository's URL, without credentials
	Version    string    // label …version
	BaseName   string    // label …base.name: full reference of the base
	BaseDigest string    // label …base.digest: what BaseName's registry calls it; "" takes Base's own
	Created    time.Time // the commit's time, never the clock's

	Hugo    hugoversion.Choice  // labels net.tazlab.castle.hugo.…: the version that built the site, and who asked for it
	Inputs  inputs.Inputs       // what the image is made from, for its labels and its manifest's annotations
	Headers siteheaders.Headers // sent with every answer; empty ones are left out

	// CacheDir keeps the layers' compressed bytes: the image reads them from there, so it must stay as long as the image.
	// A later build takes what is unchanged from it. Several builds may use one folder at once. Layers that no build
	// asked for during two weeks are removed.
	CacheDir string
}

// Build assembles the image. The same options and the same bytes in Site give the same digest.
func Build(ctx context.Context, o Options) (v1.Image, Report, error) {
	if o.Port == 0 {
		o.Port = DefaultPort
	}
	if o.Path == "" {
		o.Path = "/"
	}
	if err := o.check(); err != nil {
		return nil, Report{}, fmt.Errorf("site image: %w", err)
	}
	image, report, err := build(ctx, o)
	if err != nil {
		return nil, Report{}, fmt.Errorf("site image: %w", err)
	}
	return image, report, nil
}

// servedPath is a path that nginx's configuration can hold.
var servedPath = regexp.MustCompile(`^/(?:[^/\x00-\x20\x7f"'\\${};?#]+/)*$`)

func (o Options) check() error {
	var mistakes []error
	if o.Base == nil {
		mistakes = append(mistakes, errors.New("no Base; open one with ocilayout.Image"))
	}
	if o.Site == "" {
		mistakes = append(mistakes, errors.New("no Site; name the folder with the site"))
	}
	if o.CacheDir == "" {
		mistakes = append(mistakes, errors.New("no CacheDir; name a folder for the layers"))
	}
	if o.Port < 1 || o.Port > 65535 {
		mistakes = append(mistakes, fmt.Errorf("port %d is not between 1 and 65535", o.Port))
	}
	if !servedPath.MatchString(o.Path) || path.Clean(o.Path)+"/" != o.Path && o.Path != "/" {
		mistakes = append(mistakes, fmt.Errorf("the base URL's path is %q: "+
			"want one that ends with a slash and has no dots as a folder, spaces, quotes or any of \\ $ { } ; ? #", o.Path))
	}
	if o.Created.IsZero() {
		mistakes = append(mistakes, errors.New("no Created; give the time of the commit"))
	}
	for _, h := range securityHeaders(o.Headers) {
		if !isHeaderValue(h.Value) {
			mistakes = append(mistakes, fmt.Errorf("the header %s is not one line of ASCII: %q", h.Name, h.Value))
		}
	}
	return errors.Join(mistakes...)
}

func build(ctx context.Context, o Options) (v1.Image, Report, error) {
	site, err := scan(ctx, o.Site)
	if err != nil {
		return nil, Report{}, err
	}
	defer site.close()
	server, err := serverLayer(o, site)
	if err != nil {
		return nil, Report{}, err
	}
	cache, err := openCache(o.CacheDir)
	if err != nil {
		return nil, Report{}, err
	}
	base, report, err := baseLayers(o.Base)
	if err != nil {
		return nil, Report{}, fmt.Errorf("base image: %w", err)
	}
	ours, err := cache.layers(ctx, append([]group{server}, site.groups(path.Join(siteDir, o.Path))...))
	if err != nil {
		return nil, Report{}, err
	}
	image, err := assemble(o, base, ours)
	if err != nil {
		return nil, Report{}, err
	}
	for _, l := range ours {
		report.Layers = append(report.Layers, l.report)
	}
	if err := report.name(image); err != nil {
		return nil, Report{}, err
	}
	return image, report, cache.prune()
}

// assemble puts layers and configuration together. It starts from an empty OCI image, not from the base, so that a base
// in Docker's media types and the same base in OCI's give the same result.
func assemble(o Options, base []v1.Layer, ours []*layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	layers := base
	for _, l := range ours {
		layers = append(layers, l)
	}
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, err
	}
	assembled, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config, err := configure(o, ours)
	if err != nil {
		return nil, err
	}
	config.RootFS = assembled.RootFS
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, o.Inputs.Annotations()).(v1.Image), nil
}
