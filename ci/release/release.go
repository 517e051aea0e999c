package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/sbom"
	"tazlab.net/castle/ci/base/version"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/imagesign"
	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// Files of a release that are not named after a program.
const (
	checksumsFile  = "checksums.txt"
	signatureFile  = "checksums.txt.sig"
	provenanceFile = "provenance.intoto.json"
	imageFile      = "image.json"
	sbomSuffix     = ".spdx.json"
)

// hostProgram is the package of the program for users' machines.
const hostProgram = "tazlab.net/castle/ci/cmd/castle"

// Options say what is released.
type Options struct {
	Version string    // "v0.1.0": castle's own version with a v before it
	Commit  string    // whole SHA
	Source  string    // the repository's address, https://…
	Created time.Time // of the commit
	Builder string    // who builds, as an address: a workflow with its ref
	Bases   []string  // the images that programs are compiled and run in, by name and digest

	Programs string   // folder with a program for a user's machine in OS_ARCH/castle each
	Images   []string // castle's image for one platform each, as tarballs
	Inside   string   // folder with the programs of the images, in OS_ARCH/NAME, for the image's SBOM

	Image    string // the image's repository
	Registry imagepush.Access
	Signer   *cosign.Signer
	Out      string // the folder that the files come into, empty or missing

	// Rehearsal releases a version that is none yet, such as v0.1.0-dev. What comes of it says so.
	Rehearsal bool
	Began     time.Time
}

// Pushed is the image, as image.json has it.
type Pushed struct {
	Repository string   `json:"repository"`
	Tag        string   `json:"tag"`
	Digest     string   `json:"digest"`
	Platforms  []string `json:"platforms"`
}

// Reference is the image by its tag and digest.
func (p Pushed) Reference() string { return p.Repository + ":" + p.Tag + "@" + p.Digest }

// check finds all mistakes before anything is made.
func (o Options) check() error {
	var mistakes []error
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if o.Version != "v"+version.Castle {
		wrong("the version is %q, and castle says of itself that it is v%s: raise it in ci/base/version and in CHANGELOG.md, commit, and tag that commit", o.Version, version.Castle)
	}
	if strings.HasSuffix(version.Castle, "-dev") && !o.Rehearsal {
		wrong("%s is what comes after a release, not a release: raise the version, or rehearse", version.Castle)
	}
	if len(o.Commit) != 40 || strings.Trim(o.Commit, "0123456789abcdef") != "" {
		wrong("the commit %q is no whole SHA", o.Commit)
	}
	for _, address := range []struct{ name, value string }{{"source", o.Source}, {"builder", o.Builder}} {
		if parsed, err := url.Parse(address.value); err != nil || parsed.Scheme == "" || parsed.User != nil {
			wrong("the %s %q is no address without credentials, such as https://github.com/ME/castle", address.name, address.value)
		}
	}
	if o.Signer == nil {
		wrong("a release is signed: give the private key, which `cosign generate-key-pair` makes")
	}
	if o.Image == "" || len(o.Images) == 0 {
		wrong("a release has an image: name its repository, and give it for one platform at least")
	}
	if entries, err := os.ReadDir(o.Out); err == nil && len(entries) > 0 {
		wrong("%s is not empty; name a new folder", o.Out)
	}
	return errors.Join(mistakes...)
}

// Make makes a release: the image first, with all that stands beside it, then the files. Where it failed, the same call goes on.
func Make(ctx context.Context, o Options) (Pushed, error) {
	if o.Began.IsZero() {
		o.Began = time.Now()
	}
	if err := o.check(); err != nil {
		return Pushed{}, err
	}
	programs, err := readPrograms(o.Programs, true)
	if err != nil {
		return Pushed{}, err
	}
	inside, err := readPrograms(o.Inside, false)
	if err != nil {
		return Pushed{}, err
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return Pushed{}, err
	}
	pushed, err := o.pushImage(ctx)
	if err != nil {
		return Pushed{}, err
	}
	predicate, err := o.predicate(time.Now())
	if err != nil {
		return Pushed{}, err
	}
	if err := o.signImage(ctx, pushed, inside, predicate); err != nil {
		return Pushed{}, fmt.Errorf("sign %s: %w", pushed.Reference(), err)
	}
	return pushed, o.writeFiles(programs, pushed, predicate)
}

// readPrograms reads a folder of OS_ARCH/NAME. For users' machines all are castle.
func readPrograms(folder string, host bool) ([]*program, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*_*", "*"))
	if err != nil {
		return nil, err
	}
	var all []*program
	for _, path := range paths {
		platform := filepath.Base(filepath.Dir(path))
		one, err := open(path, filepath.Base(path)+"_"+platform)
		if err != nil {
			return nil, err
		}
		if got := strings.Replace(one.platform, "/", "_", 1); got != platform {
			return nil, fmt.Errorf("%s was compiled for %s", path, one.platform)
		}
		if host && one.info.Path != hostProgram {
			return nil, fmt.Errorf("%s is %s, not %s", path, one.info.Path, hostProgram)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no programs, which are to be in OS_ARCH/NAME, such as linux_amd64/castle", folder)
	}
	return all, nil
}

// pushImage joins the images of the platforms and pushes them under the version.
func (o Options) pushImage(ctx context.Context) (Pushed, error) {
	pushed := Pushed{Repository: o.Image, Tag: o.Version}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, file := range o.Images {
		image, err := ocilayout.Image(file, "")
		if err != nil {
			return pushed, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return pushed, fmt.Errorf("%s: %w", file, err)
		}
		platform := config.Platform()
		if slices.Contains(pushed.Platforms, platform.String()) {
			return pushed, fmt.Errorf("there are two images for %s", platform)
		}
		pushed.Platforms = append(pushed.Platforms, platform.String())
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	// An engine writes the time into an image that it makes, so a second try of the same release is known by its inputs.
	made := inputs.Inputs{Commit: o.Commit, Base: strings.Join(o.Bases, " "), Castle: version.Castle, Platforms: slices.Sorted(slices.Values(pushed.Platforms))}
	folder, err := os.MkdirTemp("", "castle-release-*")
	if err != nil {
		return pushed, err
	}
	defer os.RemoveAll(folder)
	layout := filepath.Join(folder, "image")
	if err := ocilayout.Write(layout, mutate.Annotations(index, made.Annotations()).(v1.ImageIndex)); err != nil {
		return pushed, err
	}
	result, err := imagepush.Push(ctx, imagepush.Options{
		Access: o.Registry, Reference: o.Image + ":" + o.Version, Layout: layout, Known: o.signed,
	})
	pushed.Digest = result.Digest
	return pushed, err
}

// signed reports whether an earlier try of the release has signed the image with this digest.
func (o Options) signed(ctx context.Context, _, digest string) (bool, error) {
	image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: digest}
	return imagesign.Signed(ctx, image, o.Signer.Verifier())
}

// signImage makes what stands beside the image.
func (o Options) signImage(ctx context.Context, pushed Pushed, inside []*program, provenance []byte) error {
	image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: pushed.Digest}
	if _, err := imagesign.Sign(ctx, image, o.Signer); err != nil {
		return err
	}
	if _, err := imagesign.Attest(ctx, image, o.Signer, cosign.PredicateSPDX, func() ([]byte, error) { return o.imageSBOM(pushed, inside) }); err != nil {
		return err
	}
	_, err := imagesign.Attest(ctx, image, o.Signer, cosign.PredicateSLSA, func() ([]byte, error) { return provenance, nil })
	return err
}

// imageSBOM lists the programs that castle puts into its image, with their modules, and the image below.
func (o Options) imageSBOM(pushed Pushed, inside []*program) ([]byte, error) {
	_, hex, _ := strings.Cut(pushed.Digest, ":")
	d := sbom.New("castle-image-"+o.Version, "https://spdx.org/spdxdocs/castle-"+hex, "castle-"+o.Version+" "+short(o.Commit), o.Created)
	image := d.Add(sbom.Part{Name: o.Image, Version: o.Version, Purpose: "CONTAINER", Checksums: map[string]string{"SHA256": hex}})
	for _, base := range o.Bases {
		name, digest, _ := strings.Cut(base, "@")
		_, sum, _ := strings.Cut(digest, ":")
		d.Relate(image, sbom.DescendantOf, d.Add(sbom.Part{Name: name, Version: digest, Purpose: "CONTAINER", Checksums: map[string]string{"SHA256": sum}}))
	}
	for _, one := range inside {
		d.Relate(image, sbom.Contains, one.add(d, o.Version))
	}
	return d.JSON()
}

// writeFiles writes all files, the signature over the others' sums last.
func (o Options) writeFiles(programs []*program, pushed Pushed, predicate []byte) error {
	write := func(name string, text []byte) error { return os.WriteFile(filepath.Join(o.Out, name), text, 0o644) }
	subjects := []cosign.Subject{cosign.SubjectOf(pushed.Repository, pushed.Digest)}
	for _, one := range programs {
		content, err := os.ReadFile(one.path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.Out, one.file), content, 0o755); err != nil {
			return err
		}
		list, err := one.sbom(o.Version, o.Commit, o.Created)
		if err != nil {
			return err
		}
		if err := write(one.file+sbomSuffix, list); err != nil {
			return err
		}
		subjects = append(subjects, cosign.SubjectOf(one.file, "sha256:"+one.sum))
	}
	image, err := json.MarshalIndent(pushed, "", "  ")
	if err != nil {
		return err
	}
	envelope, err := o.Signer.Attest(cosign.Statement{Subject: subjects, PredicateType: cosign.PredicateSLSA, Predicate: predicate})
	if err != nil {
		return err
	}
	if err := errors.Join(write(imageFile, append(image, '\n')), write(provenanceFile, append(envelope, '\n'))); err != nil {
		return err
	}
	sums, err := sumFolder(o.Out)
	if err != nil {
		return err
	}
	made, err := o.Signer.Sign([]byte(sums))
	if err != nil {
		return err
	}
	return errors.Join(write(checksumsFile, []byte(sums)), write(signatureFile, []byte(made+"\n")))
}
