// Package imagesbom says what a site's image consists of, as far as castle knows for certain: the commit, the base image and its
// packages by the base's own records, Hugo, and the Hugo modules and npm packages that the site pins. It guesses nothing from files'
// contents, and a theme that is in the site's own folder is part of the commit.
package imagesbom

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/package-url/packageurl-go"

	"tazlab.net/castle/ci/base/sbom"
	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/siteimage"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
	"tazlab.net/castle/ci/publish/worktree"
)

// Options say whose parts are listed.
type Options struct {
	Layout     string // folder with the OCI layout
	Export     string // folder that the commit was exported to; "": the site's modules and packages are left out
	Site       string // the site's path in it
	Commit     worktree.Commit
	Hugo       hugoversion.Choice
	Repository string // the image's
	Tag        string
	Digest     string // what the registry has, which was made from the same inputs as the layout
}

// Make writes the list. The same options give the same bytes.
func Make(ctx context.Context, o Options) (text []byte, parts int, err error) {
	document, err := o.document(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("the SBOM: %w", err)
	}
	text, err = document.JSON()
	return text, document.Parts(), err
}

func (o Options) document(ctx context.Context) (*sbom.Document, error) {
	artifact, err := ocilayout.Read(o.Layout)
	if err != nil {
		return nil, err
	}
	manifest, err := artifact.RawManifest()
	if err != nil {
		return nil, err
	}
	made := inputs.OfManifest(manifest)
	_, hex, _ := strings.Cut(o.Digest, ":")
	// The namespace is an address that leads nowhere, as SPDX recommends one; the digest makes it unique.
	d := sbom.New(path.Base(o.Repository)+"-"+o.Tag, "https://spdx.org/spdxdocs/castle-"+hex, "castle-"+cmp.Or(made.Castle, "unknown"), o.Commit.Time)

	image := d.Add(sbom.Part{
		Name: o.Repository, Version: o.Tag, Purpose: "CONTAINER", Checksums: map[string]string{"SHA256": hex}, PURL: imagePURL(o.Repository, o.Digest, o.Tag),
	})
	source := d.Add(sbom.Part{
		Name: cmp.Or(o.Commit.Source, "site"), Version: o.Commit.SHA, Purpose: "SOURCE", Download: sourceAddress(o.Commit),
	})
	d.Relate(image, sbom.GeneratedFrom, source)
	if o.Hugo.Version != "" {
		hugo := sbom.Part{Name: "hugo", Version: o.Hugo.Version, Purpose: "APPLICATION",
			PURL: purl(packageurl.TypeGolang, "github.com/gohugoio", "hugo", "v"+o.Hugo.Version, nil)}
		if made.Hugo != "" {
			hugo.Comment = "run from the image " + made.Hugo
		}
		d.Relate(d.Add(hugo), sbom.BuildToolOf, image)
	}
	if err := o.pinned(d, source); err != nil {
		return nil, err
	}
	switch a := artifact.(type) {
	case v1.Image:
		return d, addBase(ctx, d, image, a)
	case v1.ImageIndex:
		index, err := a.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, described := range index.Manifests {
			one, err := a.Image(described.Digest)
			if err != nil {
				return nil, err
			}
			config, err := one.ConfigFile()
			if err != nil {
				return nil, err
			}
			variant := d.Add(sbom.Part{
				Name: o.Repository, Version: o.Tag + " " + config.Platform().String(), Purpose: "CONTAINER",
				Checksums: map[string]string{"SHA256": described.Digest.Hex},
			})
			d.Relate(variant, sbom.VariantOf, image)
			if err := addBase(ctx, d, variant, one); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// addBase lists the image below the site, by the labels that castle wrote, and what it says that it has installed.
func addBase(ctx context.Context, d *sbom.Document, image sbom.ID, of v1.Image) error {
	config, err := of.ConfigFile()
	if err != nil {
		return err
	}
	labels := config.Config.Labels
	name, digest := labels["org.opencontainers.image.base.name"], labels["org.opencontainers.image.base.digest"]
	repository, tag, _ := strings.Cut(path.Base(name), ":")
	repository = path.Join(path.Dir(name), repository)
	_, hex, _ := strings.Cut(digest, ":")
	base := d.Add(sbom.Part{
		Name: cmp.Or(name, "base image"), Version: digest, Purpose: "CONTAINER", Checksums: map[string]string{"SHA256": hex},
		PURL: imagePURL(repository, digest, tag),
	})
	d.Relate(image, sbom.DescendantOf, base)

	layers, err := of.Layers()
	if err != nil {
		return err
	}
	installed, err := readInstalled(ctx, layers[:len(layers)-ownLayers(config)])
	if err != nil {
		return err
	}
	for _, part := range installed.parts(config.Architecture) {
		d.Relate(base, sbom.Contains, d.Add(part))
	}
	return nil
}

// ownLayers is how many of an image's layers are the site's.
func ownLayers(config *v1.ConfigFile) (own int) {
	for _, entry := range config.History {
		if strings.HasPrefix(entry.CreatedBy, siteimage.LayerHistory) {
			own++
		}
	}
	return min(own, len(config.RootFS.DiffIDs))
}

func imagePURL(repository, digest, tag string) string {
	if digest == "" {
		return ""
	}
	return purl(packageurl.TypeOCI, "", strings.ToLower(path.Base(repository)), digest, map[string]string{"repository_url": repository, "tag": tag})
}

func purl(kind, namespace, name, version string, qualifiers map[string]string) string {
	for key, value := range qualifiers {
		if value == "" {
			delete(qualifiers, key)
		}
	}
	return packageurl.NewPackageURL(kind, namespace, name, version, packageurl.QualifiersFromMap(qualifiers), "").ToString()
}

// sourceAddress is the commit as SPDX writes it; empty where its remote is none that others reach.
func sourceAddress(commit worktree.Commit) string {
	if !strings.HasPrefix(commit.Source, "https://") {
		return ""
	}
	return "git+" + commit.Source + "@" + commit.SHA
}
