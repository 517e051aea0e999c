package secrets

import (
	"encoding/base64"
	"encoding/pem"
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
		case products.has(name):
			redact.Add(PrivateKeys(value)...)
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

// PrivateKeys are what of a kubeconfig or a talosconfig must not be shown, PEM in base64: the addresses beside them are in every log.
// Of a text without any, which is neither, that is all of it.
func PrivateKeys(config string) []string {
	var keys []string
	for _, word := range longBase64.FindAllString(config, -1) {
		text, err := base64.StdEncoding.DecodeString(word)
		if block, _ := pem.Decode(text); err == nil && block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY") {
			keys = append(keys, word)
		}
	}
	if keys == nil {
		return []string{config}
	}
	return keys
}

var longBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{64,}={0,2}`)

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
