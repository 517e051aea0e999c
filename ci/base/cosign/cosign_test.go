package cosign

import (
	"crypto/elliptic"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

const password = "canary-9b3d-password/+&"

// newPair is what `cosign generate-key-pair` writes. Source: cosign, pkg/cosign/keys.go, GenerateKeyPair.
func newPair(t *testing.T) (private, public string) {
	t.Helper()
	key, pub, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		t.Fatal(err)
	}
	return string(key), string(pub)
}

func newSigner(t *testing.T) *Signer {
	t.Helper()
	private, _ := newPair(t)
	signer, err := NewSigner(private, password)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestWhatIsSignedIsVerifiedByThePublicKeyOfThePairAlone(t *testing.T) {
	private, public := newPair(t)
	signer, err := NewSigner(private, password)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	if verifier.Fingerprint() != signer.Verifier().Fingerprint() || string(verifier.PEM()) != public {
		t.Error("the two halves of a pair have different public keys")
	}
	made, err := signer.Sign([]byte("checksums"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify([]byte("checksums"), made); err != nil {
		t.Errorf("the pair's own key: %v", err)
	}
	if verifier.Verify([]byte("checksumz"), made) == nil {
		t.Error("another message was accepted")
	}
	if newSigner(t).Verifier().Verify([]byte("checksums"), made) == nil {
		t.Error("another key was accepted")
	}
	if verifier.Verify([]byte("checksums"), "%") == nil {
		t.Error("a signature that is no base64 was accepted")
	}
}

func TestAnImagesSignatureIsForItsDigestAlone(t *testing.T) {
	signer := newSigner(t)
	of := func(digit string) name.Digest {
		digest, err := name.NewDigest("registry.example.org/me/blog@sha256:" + strings.Repeat(digit, 64))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	text, made, err := signer.SignImage(of("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := signer.Verifier().VerifyImage(text, made, of("a").DigestStr()); err != nil {
		t.Errorf("its own digest: %v", err)
	}
	if err := signer.Verifier().VerifyImage(text, made, of("b").DigestStr()); err == nil || !strings.Contains(err.Error(), "another image") {
		t.Errorf("another digest: %v", err)
	}
	// The form that cosign reads: its specs/SIGNATURE_SPEC.md.
	var form struct {
		Critical struct {
			Identity map[string]string
			Image    map[string]string
			Type     string
		}
	}
	if err := json.Unmarshal(text, &form); err != nil || form.Critical.Type != "cosign container image signature" ||
		form.Critical.Image["docker-manifest-digest"] != of("a").DigestStr() || form.Critical.Identity["docker-reference"] != "registry.example.org/me/blog" {
		t.Errorf("%s: %+v, %v", text, form, err)
	}
}

func TestAStatementIsReadOnlyWithTheKeyThatSignedIt(t *testing.T) {
	signer := newSigner(t)
	digest := "sha256:" + strings.Repeat("a", 64)
	envelope, err := signer.Attest(Statement{
		Subject: []Subject{SubjectOf("blog", digest)}, PredicateType: PredicateSPDX, Predicate: json.RawMessage(`{"spdxVersion":"SPDX-2.3"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := signer.Verifier().Open(envelope)
	if err != nil || opened.Type != StatementType || !opened.About(digest) || string(opened.Predicate) != `{"spdxVersion":"SPDX-2.3"}` {
		t.Errorf("%+v, %v", opened, err)
	}
	for _, other := range []string{"", "sha256:", "sha256:" + strings.Repeat("b", 64)} {
		if opened.About(other) {
			t.Errorf("it is about %q, too", other)
		}
	}
	if _, err := newSigner(t).Verifier().Open(envelope); err == nil {
		t.Error("another key was accepted")
	}
	var parts map[string]any
	if err := json.Unmarshal(envelope, &parts); err != nil {
		t.Fatal(err)
	}
	payload := parts["payload"].(string)
	parts["payload"] = payload[:8] + map[bool]string{true: "A", false: "B"}[payload[8] != 'A'] + payload[9:]
	changed, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Verifier().Open(changed); err == nil {
		t.Error("a changed statement was accepted")
	}
}

func TestAKeyThatIsOfNoUseIsRefusedWithTheFixAndWithoutItsText(t *testing.T) {
	private, public := newPair(t)
	plain, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.SkipPassword)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ key, password, says string }{
		"no text in PEM":      {"canary-9b3d-key", password, "no text in PEM"},
		"the other file":      {public, password, "public key"},
		"no password":         {private, "", "without a password"},
		"another password":    {private, "canary-9b3d-other", "does not open with the password"},
		"a key in the clear":  {string(plain), password, "generate-key-pair"},
		"a key that was cut":  {private[:len(private)/2] + "\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n", password, ""},
		"of another program":  {"-----BEGIN OPENSSH PRIVATE KEY-----\nYQ==\n-----END OPENSSH PRIVATE KEY-----\n", password, "OPENSSH"},
		"with nothing inside": {"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nYQ==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n", password, "does not open"},
	} {
		_, err := NewSigner(c.key, c.password)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for line := range strings.Lines(c.key) {
			if line = strings.TrimSpace(line); len(line) > 8 && !strings.HasPrefix(line, "-----") && strings.Contains(err.Error(), line) {
				t.Errorf("%s: the error holds a line of the key: %v", name, err)
			}
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error holds a secret: %v", name, err)
		}
	}
	if _, err := NewVerifier(private); err == nil || !strings.Contains(err.Error(), "cosign.pub") {
		t.Errorf("a private key in place of the public one: %v", err)
	}
	if _, err := NewVerifier("cosign.pub"); err == nil {
		t.Error("a file's name in place of its content was accepted")
	}
}
