package cosign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

// The kinds of statements that castle makes. Sources: in-toto attestation framework, spec/v1/statement.md and spec/predicates.
const (
	StatementType  = "https://in-toto.io/Statement/v1"
	PredicateSPDX  = "https://spdx.dev/Document"
	PredicateSLSA  = "https://slsa.dev/provenance/v1"
	envelopeType   = "application/vnd.in-toto+json"
	statementTypes = "https://in-toto.io/Statement/" // `cosign attest` writes v0.1, which has the same fields
)

// Statement says something of artifacts that are named by their digests.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Subject is an artifact; the digest has algorithms as keys, and no prefix before its hexadecimal digits.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// SubjectOf is the subject of that name and digest ("sha256:…").
func SubjectOf(name, digest string) Subject {
	algorithm, hex, _ := strings.Cut(digest, ":")
	return Subject{Name: name, Digest: map[string]string{algorithm: hex}}
}

// About reports whether the statement is about an artifact with that digest ("sha256:…").
func (s Statement) About(digest string) bool {
	algorithm, hex, _ := strings.Cut(digest, ":")
	return slices.ContainsFunc(s.Subject, func(of Subject) bool { return hex != "" && of.Digest[algorithm] == hex })
}

// Attest signs a statement; the result is a DSSE envelope.
func (s *Signer) Attest(statement Statement) ([]byte, error) {
	statement.Type = StatementType
	text, err := json.Marshal(statement)
	if err != nil {
		return nil, err
	}
	envelope, err := dsse.WrapSigner(s.signer, envelopeType).SignMessage(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return envelope, nil
}

// Open verifies an envelope and returns the statement in it.
func (v *Verifier) Open(envelope []byte) (Statement, error) {
	var text []byte
	opened := dsse.WrapVerifier(v.verifier, dsse.WithExpectedPayloadType(envelopeType), dsse.WithDecodedPayload(&text))
	if err := opened.VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return Statement{}, ErrOtherKey
	}
	var statement Statement
	if err := json.Unmarshal(text, &statement); err != nil {
		return Statement{}, fmt.Errorf("it holds no in-toto statement: %w", err)
	}
	if !strings.HasPrefix(statement.Type, statementTypes) {
		return Statement{}, fmt.Errorf("it holds no in-toto statement, but %q", statement.Type)
	}
	return statement, nil
}
