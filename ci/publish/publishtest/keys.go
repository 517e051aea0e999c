package publishtest

import (
	"crypto/elliptic"
	"sync"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"tazlab.net/castle/ci/base/cosign"
)

// CosignPassword is one more canary, as is the private key of a Pair.
const CosignPassword = "canary-2a8e-cosign/+&"

// Pair is what `cosign generate-key-pair` makes.
type Pair struct {
	Private, Public string
	Signer          *cosign.Signer
}

// Keys and OtherKeys are two pairs, the same for all tests of a program: to open one takes a second.
var Keys, OtherKeys = sync.OnceValue(newPair), sync.OnceValue(newPair)

func newPair() Pair {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(CosignPassword)))
	if err != nil {
		panic(err)
	}
	signer, err := cosign.NewSigner(string(private), CosignPassword)
	if err != nil {
		panic(err)
	}
	return Pair{string(private), string(public), signer}
}
