package secrets

import (
	"encoding/json"
	"fmt"
	"strings"
)

// StateEncryption is the value of TF_ENCRYPTION: OpenTofu encrypts states, plans and the states it reads of other
// layers with a key derived from the passphrase, and with "enforced" refuses to write or read any in clear.
// See https://opentofu.org/docs/language/state/encryption/.
func StateEncryption(passphrase string) (string, error) {
	if err := checkPassphrase(passphrase); err != nil {
		return "", fmt.Errorf("%s %w", StatePassphrase, err)
	}
	return fmt.Sprintf(`key_provider "pbkdf2" "castle" {
  passphrase = %s
  iterations = %d
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
remote_state_data_sources {
  default {
    method = method.aes_gcm.castle
  }
}
`, literal(passphrase), iterations), nil
}

// iterations of PBKDF2 with SHA-512 are what OWASP's password storage cheat sheet asks for. OpenTofu's default, 600,000, is
// its figure for SHA-256, and every layer derives the key several times.
const iterations = 210_000

// literal is a text as HCL has it in quotes: as JSON, without templates.
func literal(text string) string {
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be encoded
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strings.TrimSpace(quoted.String()))
}
