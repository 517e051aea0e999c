package release

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"
	"golang.org/x/mod/modfile"

	"tazlab.net/castle/ci/base/sbom"
)

// program is a compiled one.
type program struct {
	file     string // its name in the release
	path     string
	sum      string // SHA-256, in hexadecimal
	info     *debug.BuildInfo
	platform string // "linux/amd64"
}

// open reads what a program says of how it was built.
func open(path, file string) (*program, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s is no program that Go compiled: %w", path, err)
	}
	sum, err := sumOf(path)
	if err != nil {
		return nil, err
	}
	p := &program{file: file, path: path, sum: sum, info: info}
	p.platform = p.setting("GOOS") + "/" + p.setting("GOARCH")
	return p, nil
}

func (p *program) setting(key string) string {
	for _, setting := range p.info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// part is the program itself.
func (p *program) part(version string) sbom.Part {
	return sbom.Part{
		Name: p.file, Version: version, Purpose: "APPLICATION", Checksums: map[string]string{"SHA256": p.sum},
		Comment: fmt.Sprintf("compiled by %s from %s for %s", p.info.GoVersion, p.info.Path, p.platform),
	}
}

// add lists what is in the program.
func (p *program) add(d *sbom.Document, version string) sbom.ID {
	itself := d.Add(p.part(version))
	d.Relate(itself, sbom.Contains, d.Add(sbom.Part{
		Name: "stdlib", Version: strings.TrimPrefix(p.info.GoVersion, "go"), Purpose: "LIBRARY",
		PURL: packageurl.NewPackageURL(packageurl.TypeGolang, "", "stdlib", strings.TrimPrefix(p.info.GoVersion, "go"), nil, "").ToString(),
	}))
	for _, module := range p.info.Deps {
		d.Relate(itself, sbom.Contains, d.Add(modulePart(module)))
	}
	return itself
}

// sbom is a document of the program alone.
func (p *program) sbom(version, commit string, created time.Time) ([]byte, error) {
	d := sbom.New(p.file+"-"+version, "https://spdx.org/spdxdocs/castle-"+p.sum, "castle-"+version+" "+short(commit), created)
	p.add(d, version)
	return d.JSON()
}

// modulePart is a module, or the module that replaces it; one that a folder replaces keeps its name. Its sum is the one of go.sum, which is no sum of a file: a comment has it.
func modulePart(module *debug.Module) sbom.Part {
	comment := ""
	if module.Replace != nil && !modfile.IsDirectoryPath(module.Replace.Path) {
		comment = "in place of " + module.Path + " " + module.Version
		module = module.Replace
	}
	if sum, is := strings.CutPrefix(module.Sum, "h1:"); is {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			comment = strings.TrimPrefix(comment+"; go.sum h1 "+hex.EncodeToString(raw), "; ")
		}
	}
	namespace, name := "", module.Path
	if i := strings.LastIndexByte(module.Path, '/'); i >= 0 {
		namespace, name = module.Path[:i], module.Path[i+1:]
	}
	return sbom.Part{
		Name: module.Path, Version: module.Version, Purpose: "LIBRARY", Comment: comment,
		PURL: packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, module.Version, nil, "").ToString(),
	}
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
