package imagesbom

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/package-url/packageurl-go"
	"golang.org/x/mod/modfile"

	"tazlab.net/castle/ci/base/sbom"
	"tazlab.net/castle/ci/publish/site/hugobuild"
	"tazlab.net/castle/ci/publish/site/npmlock"
)

// pinned lists what the site's own files pin: Hugo modules, and the npm packages where castle installs them.
func (o Options) pinned(d *sbom.Document, source sbom.ID) error {
	if o.Export == "" {
		return nil
	}
	modules, err := hugoModules(filepath.Join(o.Export, o.Site))
	if err != nil {
		return err
	}
	for _, part := range modules {
		d.Relate(d.Add(part), sbom.DependencyOf, source)
	}
	packages, err := o.npmPackages()
	if err != nil {
		return err
	}
	for _, part := range packages {
		d.Relate(d.Add(part), sbom.BuildDependencyOf, source)
	}
	return nil
}

// hugoModules are those of the site's go.mod, which Hugo keeps as Go does.
func hugoModules(site string) ([]sbom.Part, error) {
	name := filepath.Join(site, "go.mod")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		return nil, fmt.Errorf("the site's Hugo modules: %w", err)
	}
	var parts []sbom.Part
	for _, required := range file.Require {
		namespace, last := splitLast(required.Mod.Path)
		parts = append(parts, sbom.Part{
			Name: required.Mod.Path, Version: required.Mod.Version, Purpose: "LIBRARY",
			PURL: purl(packageurl.TypeGolang, namespace, last, required.Mod.Version, nil),
		})
	}
	return parts, nil
}

// npmPackages are those of the lock file that the site is built with.
func (o Options) npmPackages() ([]sbom.Part, error) {
	folder, err := hugobuild.PackageFolder(o.Export, o.Site)
	if err != nil || folder == "" {
		return nil, err
	}
	var text []byte
	for _, name := range npmlock.Names {
		if text, err = os.ReadFile(filepath.Join(o.Export, folder, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	lock, err := npmlock.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the lock of the site's npm packages: %w", err)
	}
	found := map[string]npmlock.Pinned{} // by folder, or name
	for folder, one := range lock.Packages {
		if i := strings.LastIndex(folder, "node_modules/"); i >= 0 && !one.Link {
			if one.Name == "" {
				one.Name = folder[i+len("node_modules/"):]
			}
			found[folder] = one.Pinned
		}
	}
	if len(lock.Packages) == 0 {
		for name, one := range lock.Dependencies {
			one.Name = name
			found[name] = one
		}
	}
	var parts []sbom.Part
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, npmPart(found[folder]))
	}
	slices.SortStableFunc(parts, func(a, b sbom.Part) int { return strings.Compare(a.PURL, b.PURL) })
	// The same version may be in several folders.
	return slices.CompactFunc(parts, func(a, b sbom.Part) bool { return a.PURL == b.PURL }), nil
}

func npmPart(one npmlock.Pinned) sbom.Part {
	namespace, last := splitLast(one.Name)
	part := sbom.Part{Name: one.Name, Version: one.Version, Purpose: "LIBRARY", PURL: purl(packageurl.TypeNPM, namespace, last, one.Version, nil)}
	if strings.HasPrefix(one.Resolved, "https://") {
		part.Download = one.Resolved
	}
	algorithm, sum, _ := strings.Cut(one.Integrity, "-")
	if raw, err := base64.StdEncoding.DecodeString(sum); err == nil && len(raw) > 0 {
		part.Checksums = map[string]string{strings.ToUpper(algorithm): hex.EncodeToString(raw)}
	}
	return part
}

func splitLast(name string) (before, last string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}
