// Package sbom writes and reads bills of materials, as SPDX 2.3 in JSON. The same parts in the same order give the same bytes.
package sbom

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// How parts relate; the first is related to the second. Source: SPDX 2.3, clause 11.
const (
	DescendantOf      = common.TypeRelationshipDescendantOf
	GeneratedFrom     = common.TypeRelationshipGeneratedFrom
	VariantOf         = common.TypeRelationshipVariantOf
	Contains          = common.TypeRelationshipContains
	BuildToolOf       = common.TypeRelationshipBuildToolOf
	BuildDependencyOf = common.TypeRelationshipBuildDependencyOf
	DependencyOf      = common.TypeRelationshipDependencyOf
)

// Part is a package. What is not known is left out.
type Part struct {
	Name      string
	Version   string
	PURL      string            // how scanners know it, such as pkg:deb/debian/nginx@1.2
	Download  string            // an address, such as git+https://…
	Purpose   string            // CONTAINER, APPLICATION, SOURCE, LIBRARY, …
	Checksums map[string]string // by algorithm (SHA256), in hexadecimal
	Licence   string            // as its own record declares it
	Comment   string
}

// ID is a part's within its document.
type ID = common.ElementID

// Document is one in the making. The first part is what it describes.
type Document struct {
	document *spdx.Document
	seen     map[ID]int
}

// New begins a document. The namespace is an address of its own for each content; created is any time that the content tells, so
// that the document is the same whenever it is made.
func New(name, namespace, tool string, created time.Time) *Document {
	return &Document{
		document: &spdx.Document{
			SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
			DocumentName: name, DocumentNamespace: namespace,
			CreationInfo: &spdx.CreationInfo{
				Creators: []common.Creator{{CreatorType: "Tool", Creator: tool}},
				Created:  created.UTC().Format(time.RFC3339),
			},
		},
		seen: map[ID]int{},
	}
}

const unknown = "NOASSERTION"

// Add adds a part.
func (d *Document) Add(p Part) ID {
	id := d.id(p)
	made := &spdx.Package{
		PackageName: p.Name, PackageSPDXIdentifier: id, PackageVersion: p.Version, PackageDownloadLocation: p.Download,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PrimaryPackagePurpose: p.Purpose, PackageComment: p.Comment,
	}
	if p.Download == "" {
		made.PackageDownloadLocation = unknown
	}
	if p.Licence != "" {
		made.PackageLicenseDeclared = p.Licence
	}
	if p.PURL != "" {
		made.PackageExternalReferences = []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: p.PURL,
		}}
	}
	for _, algorithm := range []common.ChecksumAlgorithm{common.SHA1, common.SHA256, common.SHA384, common.SHA512} {
		if value := p.Checksums[string(algorithm)]; value != "" {
			made.PackageChecksums = append(made.PackageChecksums, common.Checksum{Algorithm: algorithm, Value: value})
		}
	}
	d.document.Packages = append(d.document.Packages, made)
	if len(d.document.Packages) == 1 {
		d.Relate("DOCUMENT", common.TypeRelationshipDescribe, id)
	}
	return id
}

// id is made of the part's name and version, of the letters that SPDX allows, and a number where several have the same.
func (d *Document) id(p Part) ID {
	id := ID("Package-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.TrimSuffix(p.Name+"-"+p.Version, "-")))
	d.seen[id]++
	if n := d.seen[id]; n > 1 {
		return ID(fmt.Sprintf("%s--%d", id, n))
	}
	return id
}

// Relate says how a part relates to another.
func (d *Document) Relate(a ID, how string, b ID) {
	d.document.Relationships = append(d.document.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(a)), Relationship: how, RefB: common.MakeDocElementID("", string(b)),
	})
}

// Parts is how many there are.
func (d *Document) Parts() int { return len(d.document.Packages) }

// JSON is the document.
func (d *Document) JSON() ([]byte, error) {
	var text bytes.Buffer
	if err := json.Write(d.document, &text, json.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("write the SBOM: %w", err)
	}
	return text.Bytes(), nil
}

// Read is what a document says that New and Add, or another tool, made: how many parts it has, and the checksums of the one that it
// describes, by algorithm. Errors say what is wrong with it.
func Read(text []byte) (parts int, described map[string]string, err error) {
	document, err := json.Read(bytes.NewReader(text))
	if err != nil {
		return 0, nil, fmt.Errorf("it is no SPDX document in JSON: %w", err)
	}
	described = map[string]string{}
	for _, related := range document.Relationships {
		if related.Relationship != common.TypeRelationshipDescribe || related.RefA.ElementRefID != "DOCUMENT" {
			continue
		}
		for _, part := range document.Packages {
			if part.PackageSPDXIdentifier != related.RefB.ElementRefID {
				continue
			}
			for _, checksum := range part.PackageChecksums {
				described[string(checksum.Algorithm)] = checksum.Value
			}
		}
	}
	return len(document.Packages), described, nil
}
