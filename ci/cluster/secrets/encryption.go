package secrets

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"sync"

	"tazlab.net/castle/ci/base/redact"
)

// StateEncryption is the value of TF_ENCRYPTION: OpenTofu encrypts states and plans with a key derived from the passphrase, and with
// "enforced" refuses to write or read any in clear. See https://opentofu.org/docs/language/state/encryption/.
//
// The passphrase is stretched here once, and OpenTofu is given the result with the fewest iterations that it allows: it
// derives the key anew for every read and write of a state, which with its default took 14 s of a run's CPU time, and once for each of
// these blocks whenever it starts.
func StateEncryption(cluster, passphrase string) (string, error) {
	key, err := StateKey(cluster, passphrase)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`key_provider "pbkdf2" "castle" {
  passphrase    = "%s"
  iterations    = %d
  hash_function = "sha256"
}
method "aes_gcm" "castle" {
  keys = key_provider.pbkdf2.castle
}
state {
  method   = method.aes_gcm.castle
  enforced = true
}
plan {
  method   = method.aes_gcm.castle
  enforced = true
}
`, key, leastIterations), nil
}

// StateKey is the stretched passphrase, which OpenTofu is given as its own. It takes most of a second, once for
// each process.
func StateKey(cluster, passphrase string) (string, error) {
	stretch := func() (string, error) {
		if err := checkPassphrase(passphrase); err != nil {
			return "", fmt.Errorf("%s %w", StatePassphrase, err)
		}
		stretched, err := pbkdf2.Key(sha512.New, passphrase, []byte("castle state of cluster "+cluster), iterations, keyLength)
		if err != nil {
			return "", err
		}
		key := hex.EncodeToString(stretched)
		redact.Add(key)
		return key, nil
	}
	once, _ := stateKeys.LoadOrStore([2]string{cluster, passphrase}, sync.OnceValues(stretch))
	return once.(func() (string, error))()
}

// stateKeys are those that were asked for.
var stateKeys sync.Map

// RemoteStates is what a value of TF_ENCRYPTION needs besides, where layers read other layers' states. castle's own do not.
const RemoteStates = `remote_state_data_sources {
  default {
    method = method.aes_gcm.castle
  }
}
`

const (
	// iterations of PBKDF2 with SHA-512: OpenTofu's own default.
	iterations = 600_000
	// leastIterations are the fewest that OpenTofu's key provider takes.
	leastIterations = 200_000
	keyLength       = 32
)
