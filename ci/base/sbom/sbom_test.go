package sbom

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func example() *Document {
	d := New("blog-1a2b3c4", "https://spdx.org/spdxdocs/example", "castle-0.1.0", time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	image := d.Add(Part{Name: "blog", Version: "1a2b3c4", Purpose: "CONTAINER", Checksums: map[string]string{"SHA256": strings.Repeat("a", 64)}})
	for _, version := range []string{"1.0", "1.0"} {
		d.Relate(image, Contains, d.Add(Part{Name: "libc6/x", Version: version, PURL: "pkg:deb/debian/libc6@1.0", Licence: "LGPL-2.1-only"}))
	}
	return d
}

func TestTheSamePartsGiveTheSameDocument(t *testing.T) {
	first, err := example().JSON()
	if err != nil {
		t.Fatal(err)
	}
	second, err := example().JSON()
	if err != nil || string(first) != string(second) {
		t.Errorf("%v:\n%s\n%s", err, first, second)
	}
}

// What the specification asks of each document and package: SPDX 2.3, clauses 6 and 7.
func TestADocumentHasWhatSPDXAsksFor(t *testing.T) {
	text, err := example().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		SPDXVersion, DataLicense, SPDXID, Name, DocumentNamespace string
		CreationInfo                                              struct {
			Created  string
			Creators []string
		}
		Packages []struct {
			Name, SPDXID, DownloadLocation, CopyrightText, LicenseConcluded, LicenseDeclared string
			FilesAnalyzed                                                                    *bool
			ExternalRefs                                                                     []struct{ ReferenceCategory, ReferenceType, ReferenceLocator string }
		}
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if document.SPDXVersion != "SPDX-2.3" || document.DataLicense != "CC0-1.0" || document.SPDXID != "SPDXRef-DOCUMENT" || document.Name == "" ||
		document.DocumentNamespace == "" || document.CreationInfo.Created != "2026-01-02T02:04:05Z" || document.CreationInfo.Creators[0] != "Tool: castle-0.1.0" {
		t.Errorf("%+v", document)
	}
	ids := map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range document.Packages {
		if ids[p.SPDXID] || strings.Trim(strings.TrimPrefix(p.SPDXID, "SPDXRef-"), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
			t.Errorf("the id %q is there twice, or has letters that SPDX does not allow", p.SPDXID)
		}
		ids[p.SPDXID] = true
		if p.Name == "" || p.DownloadLocation != "NOASSERTION" || p.CopyrightText != "NOASSERTION" || p.LicenseConcluded != "NOASSERTION" ||
			p.LicenseDeclared == "" || p.FilesAnalyzed == nil || *p.FilesAnalyzed {
			t.Errorf("%+v", p)
		}
	}
	if refs := document.Packages[1].ExternalRefs; len(refs) != 1 || refs[0].ReferenceCategory != "PACKAGE-MANAGER" || refs[0].ReferenceType != "purl" {
		t.Errorf("%+v", refs)
	}
	describes := 0
	for _, r := range document.Relationships {
		if !ids[r.SpdxElementID] || !ids[r.RelatedSpdxElement] {
			t.Errorf("%+v relates what is not there", r)
		}
		if r.RelationshipType == "DESCRIBES" {
			describes++
		}
	}
	if describes != 1 || len(document.Packages) != 3 {
		t.Errorf("%d parts are described, of %d", describes, len(document.Packages))
	}
}

func TestADocumentIsReadBack(t *testing.T) {
	text, err := example().JSON()
	if err != nil {
		t.Fatal(err)
	}
	parts, described, err := Read(text)
	if err != nil || parts != 3 || described["SHA256"] != strings.Repeat("a", 64) {
		t.Errorf("%d, %v, %v", parts, described, err)
	}
	for _, wrong := range []string{"", "[]", "{}", `{"spdxVersion": "SPDX-9.9"}`} {
		if _, _, err := Read([]byte(wrong)); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}
