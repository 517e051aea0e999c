package proxmox

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// access knows who may call the API: the secrets of tokens by user@realm!name. It never holds one in any other place than
// memory.
type access map[string]string

func denied(message string) error {
	return &failure{code: http.StatusUnauthorized, message: message}
}

// identify returns the caller as a task's UPID names it: user@realm!token. Its words are from src/PVE/AccessControl.pm (verify_token) of
// pve-access-control 8.2.2 and PVE/HTTPServer.pm (auth_handler) of pve-manager 8.4.1.
func (a access) identify(r *http.Request) (string, error) {
	value, is := strings.CutPrefix(r.Header.Get("Authorization"), "PVEAPIToken=")
	id, secret, complete := strings.Cut(value, "=")
	if !is || !complete {
		return "", denied("No ticket")
	}
	known, exists := a[id]
	if !exists {
		user, name, _ := strings.Cut(id, "!")
		return "", denied(fmt.Sprintf("no such token '%s' for user '%s'", name, user))
	}
	if subtle.ConstantTimeCompare([]byte(known), []byte(secret)) != 1 {
		return "", denied("invalid token value!")
	}
	return id, nil
}
