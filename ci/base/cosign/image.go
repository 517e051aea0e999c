package cosign

import (
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// Where cosign keeps what belongs to an image: under tags of the image's repository that are made of its digest, in images whose
// layers are the signatures. Source: cosign, pkg/types/media.go, pkg/oci/remote/remote.go.
const (
	SignatureSuffix     = ".sig"
	AttestationSuffix   = ".att"
	SignatureType       = "application/vnd.dev.cosign.simplesigning.v1+json"
	AttestationType     = "application/vnd.dsse.envelope.v1+json"
	SignatureAnnotation = "dev.cosignproject.cosign/signature" // of a layer: the signature over it, in base64
	PredicateAnnotation = "predicateType"                      // of a layer that is an attestation
)

// SignImage signs an image's digest. The text is what was signed.
func (s *Signer) SignImage(image name.Digest) (text []byte, made string, err error) {
	if text, err = json.Marshal(payload.Cosign{Image: image}); err != nil {
		return nil, "", err
	}
	made, err = s.Sign(text)
	return text, made, err
}

// VerifyImage verifies a text that SignImage or `cosign sign` made, and that it names the digest.
func (v *Verifier) VerifyImage(text []byte, made, digest string) error {
	if err := v.Verify(text, made); err != nil {
		return err
	}
	var signed payload.Cosign
	if err := json.Unmarshal(text, &signed); err != nil {
		return fmt.Errorf("it is none of an image: %w", err)
	}
	if of := signed.Image.DigestStr(); of != digest {
		return fmt.Errorf("it is that of another image, %s", of)
	}
	return nil
}
