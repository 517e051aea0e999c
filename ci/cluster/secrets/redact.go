package secrets

import (
	"regexp"
	"strings"

	"tazlab.net/castle/ci/base/redact"
)

// Names whose values are no secret: hiding a user's name such as "git" would spoil every log.
var public = map[string]bool{GitOpsUsername: true, GitOpsCA: true}

// learn has this process show none of the values.
func learn(values map[string]string) {
	for name, value := range values {
		switch {
		case public[name]:
		case name == ProxmoxAPIToken:
			redact.Add(TokenParts(value)...)
		default:
			redact.Add(value)
		}
	}
}

// TokenParts are what of a token of the Proxmox API, user@realm!name=uuid, must not be shown: all of it, and the uuid alone.
func TokenParts(token string) []string {
	_, key, _ := strings.Cut(token, "=")
	return []string{token, key}
}

// identity is what of an age key's text is secret. The comments beside it name the public key, which messages name too.
var identity = regexp.MustCompile(`AGE-SECRET-KEY-\S+`)

// EncryptionKeys are the keys in a value of TF_ENCRYPTION; what stands around them is in every message about encryption.
func EncryptionKeys(encryption string) []string {
	var keys []string
	for _, found := range encryptionKey.FindAllStringSubmatch(encryption, -1) {
		keys = append(keys, found[1])
	}
	return keys
}

var encryptionKey = regexp.MustCompile(`passphrase\s*=\s*"([^"]+)"`)
