package report

import "fmt"

// Signature is that of the image, by one key.
type Signature struct {
	// Key is the SHA-256 of the public key.
	Key          string `json:"key"`
	AlreadyThere bool   `json:"alreadyThere"`
	// SBOM is there where one was asked for.
	SBOM *SBOM `json:"sbom,omitempty"`
}

// SBOM is the signed list of what the image consists of.
type SBOM struct {
	AlreadyThere bool `json:"alreadyThere"`
	Parts        int  `json:"parts,omitempty"` // unknown where it was there
}

// Made says whether anything was signed in this run.
func (s *Signature) Made() bool {
	return s != nil && (!s.AlreadyThere || s.SBOM != nil && !s.SBOM.AlreadyThere)
}

func (s *Signature) rows() []row {
	if s == nil {
		return nil
	}
	const there = "there already"
	signature := "made"
	if s.AlreadyThere {
		signature = there
	}
	rows := []row{{"signature", signature + ", key " + s.Key}}
	if s.SBOM == nil {
		return rows
	}
	list := fmt.Sprintf("SPDX, %d parts, attached and signed", s.SBOM.Parts)
	if s.SBOM.AlreadyThere {
		list = there
	}
	return append(rows, row{"SBOM", list})
}
