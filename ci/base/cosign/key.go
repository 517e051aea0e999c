package cosign

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// Signer holds a private key, in memory alone.
type Signer struct {
	signer   signature.Signer
	verifier *Verifier
}

// NewSigner opens a private key: the text of cosign.key, and the password that it was made with. No error holds any of either.
func NewSigner(key, password string) (*Signer, error) {
	block, _ := pem.Decode([]byte(key))
	switch {
	case block == nil:
		return nil, errors.New("the signing key is no text in PEM; give the content of cosign.key, which `cosign generate-key-pair` writes")
	case block.Type == "PUBLIC KEY":
		return nil, errors.New("the signing key is a public key; give the content of cosign.key, the other file of the pair")
	case block.Type != string(cryptoutils.EncryptedSigstorePrivateKeyPEMType) && block.Type != "ENCRYPTED COSIGN PRIVATE KEY":
		return nil, fmt.Errorf("the signing key is of the kind %q; give the content of cosign.key, which `cosign generate-key-pair` writes", block.Type)
	}
	// The causes are not passed on: a parser's error may quote what it parsed.
	private, err := cryptoutils.UnmarshalPEMToPrivateKey([]byte(key), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil && password == "" {
		return nil, errors.New("the signing key does not open without a password; give the one that it was made with")
	}
	if err != nil {
		return nil, errors.New("the signing key does not open with the password that was given, or is damaged")
	}
	signer, err := signature.LoadSignerVerifier(private, crypto.SHA256)
	if err != nil {
		return nil, errors.New("the signing key is of a kind that signs nothing; `cosign generate-key-pair` makes one")
	}
	public, err := signer.PublicKey()
	if err != nil {
		return nil, errors.New("the signing key has no public key")
	}
	verifier, err := verifierOf(public)
	if err != nil {
		return nil, err
	}
	return &Signer{signer, verifier}, nil
}

// Verifier verifies what the signer signs.
func (s *Signer) Verifier() *Verifier { return s.verifier }

// Sign signs a message as `cosign sign-blob` does; the signature is in base64.
func (s *Signer) Sign(message []byte) (string, error) {
	made, err := s.signer.SignMessage(bytes.NewReader(message))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(made), nil
}

// Verifier holds a public key.
type Verifier struct {
	verifier signature.Verifier
	der      []byte
}

// NewVerifier reads a public key: the text of cosign.pub.
func NewVerifier(key string) (*Verifier, error) {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return nil, errors.New("the public key is no text in PEM; give the content of cosign.pub, which `cosign generate-key-pair` writes")
	}
	if block.Type != "PUBLIC KEY" {
		return nil, fmt.Errorf("the public key is of the kind %q; give the content of cosign.pub, and keep the private key to those who sign", block.Type)
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(key))
	if err != nil {
		return nil, fmt.Errorf("the public key: %w", err)
	}
	return verifierOf(public)
}

func verifierOf(public crypto.PublicKey) (*Verifier, error) {
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("the public key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("the public key: %w", err)
	}
	return &Verifier{verifier, der}, nil
}

// ErrOtherKey: a signature is not one of this key over this message.
var ErrOtherKey = errors.New("it was not made with this key, or what it signs was changed")

// Verify verifies a message's signature, as Sign makes it.
func (v *Verifier) Verify(message []byte, made string) error {
	raw, err := base64.StdEncoding.DecodeString(made)
	if err != nil || v.verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(message)) != nil {
		return ErrOtherKey
	}
	return nil
}

// Fingerprint names the key: the SHA-256 of its DER, as in `openssl pkey -pubin -in cosign.pub -outform DER | sha256sum`.
func (v *Verifier) Fingerprint() string {
	sum := sha256.Sum256(v.der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PEM is the key as cosign.pub has it.
func (v *Verifier) PEM() []byte { return cryptoutils.PEMEncode(cryptoutils.PublicKeyPEMType, v.der) }
