package imagesbom

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/package-url/packageurl-go"

	"tazlab.net/castle/ci/base/sbom"
)

// Where distributions record what is installed. Sources: dpkg-query(1); apk-tools, doc/apk.5; os-release(5).
const (
	dpkgStatus    = "var/lib/dpkg/status"
	apkInstalled  = "lib/apk/db/installed"
	osRelease     = "etc/os-release" // mostly a link to the next
	osReleaseUsr  = "usr/lib/os-release"
	largestRecord = 64 << 20
)

// installed are the records of a file system.
type installed map[string][]byte

// readInstalled reads them out of layers, the lowest first. The newest version of a file counts, and one that a later layer removed
// is not there.
func readInstalled(ctx context.Context, layers []v1.Layer) (installed, error) {
	found := installed{}
	for i := len(layers) - 1; i >= 0; i-- {
		if found.complete() {
			return found, nil
		}
		if err := found.readLayer(ctx, layers[i]); err != nil {
			return nil, fmt.Errorf("layer %d of the base image: %w", i+1, err)
		}
	}
	return found, nil
}

// complete says that lower layers have nothing to add: a system has one manager of packages.
func (f installed) complete() bool {
	return (f[dpkgStatus] != nil || f[apkInstalled] != nil) && (f[osRelease] != nil || f[osReleaseUsr] != nil)
}

func (f installed) readLayer(ctx context.Context, layer v1.Layer) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	gone := map[string]bool{}
	for files := tar.NewReader(content); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := path.Clean("/" + header.Name)[1:]
		if folder, file := path.Split(name); strings.HasPrefix(file, ".wh.") {
			gone[folder+strings.TrimPrefix(file, ".wh.")] = true
			continue
		}
		switch name {
		case dpkgStatus, apkInstalled, osRelease, osReleaseUsr:
		default:
			continue
		}
		if _, newer := f[name]; newer || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > largestRecord {
			return fmt.Errorf("%s has %d bytes", name, header.Size)
		}
		if f[name], err = io.ReadAll(files); err != nil {
			return err
		}
	}
	for name := range gone {
		if _, newer := f[name]; !newer {
			f[name] = []byte{} // there, as far as lower layers are concerned, and empty
		}
	}
	return nil
}

// parts are the installed packages, by name.
func (f installed) parts(architecture string) []sbom.Part {
	id, version := f.distribution()
	distro := strings.Trim(id+"-"+version, "-")
	var parts []sbom.Part
	for _, record := range stanzas(f[dpkgStatus]) {
		if !strings.HasSuffix(record.Get("Status"), " installed") {
			continue
		}
		parts = append(parts, sbom.Part{
			Name: record.Get("Package"), Version: record.Get("Version"),
			PURL: purl(packageurl.TypeDebian, orDefault(id, "debian"), record.Get("Package"), record.Get("Version"),
				map[string]string{"arch": record.Get("Architecture"), "distro": distro, "upstream": upstream(record)}),
		})
	}
	for _, record := range apkRecords(f[apkInstalled]) {
		parts = append(parts, sbom.Part{
			Name: record["P"], Version: record["V"],
			PURL: purl(packageurl.TypeApk, orDefault(id, "alpine"), record["P"], record["V"], map[string]string{"arch": orDefault(record["A"], architecture), "distro": distro}),
		})
	}
	slices.SortFunc(parts, func(a, b sbom.Part) int { return strings.Compare(a.Name+" "+a.PURL, b.Name+" "+b.PURL) })
	return parts
}

// upstream is the source package, where it has another name or version: what security trackers go by.
func upstream(record textproto.MIMEHeader) string {
	name, version, _ := strings.Cut(record.Get("Source"), " ")
	if version = strings.Trim(version, "()"); version != "" {
		return name + "@" + version
	}
	return name
}

func (f installed) distribution() (id, version string) {
	text := f[osRelease]
	if len(text) == 0 {
		text = f[osReleaseUsr]
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch value = strings.Trim(value, `"'`); key {
		case "ID":
			id = value
		case "VERSION_ID":
			version = value
		}
	}
	return id, version
}

// stanzas splits a file of Debian's control format, whose paragraphs are headers as those of mail. One that is damaged ends the list.
func stanzas(text []byte) (all []textproto.MIMEHeader) {
	reader := textproto.NewReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		record, err := reader.ReadMIMEHeader()
		if record.Get("Package") != "" {
			all = append(all, record)
		}
		if err != nil {
			return all
		}
	}
}

// apkRecords splits apk's database: a letter, a colon and a value in each line, an empty line between packages.
func apkRecords(text []byte) (all []map[string]string) {
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		record := map[string]string{}
		for line := range strings.Lines(paragraph) {
			if key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), ":"); found && len(key) == 1 {
				record[key] = value
			}
		}
		if record["P"] != "" {
			all = append(all, record)
		}
	}
	return all
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
