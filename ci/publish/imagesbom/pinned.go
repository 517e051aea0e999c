package imagesbom

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
)

// pinned lists what the site's own files pin: Hugo modules, and the npm packages where castle installs them.
func (o Options) pinned(d *sbom.Document, source sbom.ID) error {
	if o.Site == "" {
		return nil
	}
	modules, err := hugoModules(o.Site)
	if err != nil {
		return err
	}
	for _, part := range modules {
		d.Relate(d.Add(part), sbom.DependencyOf, source)
	}
	packages, err := npmPackages(o.Site)
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

// npmLock is package-lock.json or npm-shrinkwrap.json: Packages by their folders since version 2, Dependencies by their names before.
type npmLock struct {
	Packages     map[string]npmPackage
	Dependencies map[string]npmPackage
}

type npmPackage struct {
	Name, Version, Resolved, Integrity string
	Link                               bool
}

func npmPackages(site string) ([]sbom.Part, error) {
	wanted, err := hugobuild.WantsPackages(site)
	if err != nil || !wanted {
		return nil, err
	}
	var text []byte
	for _, name := range []string{"npm-shrinkwrap.json", "package-lock.json"} { // npm takes the first
		if text, err = os.ReadFile(filepath.Join(site, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	var lock npmLock
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("the lock of the site's npm packages: %w", err)
	}
	found := map[string]npmPackage{} // by folder, or name
	for folder, one := range lock.Packages {
		if i := strings.LastIndex(folder, "node_modules/"); i >= 0 && !one.Link {
			if one.Name == "" {
				one.Name = folder[i+len("node_modules/"):]
			}
			found[folder] = one
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

func npmPart(one npmPackage) sbom.Part {
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
