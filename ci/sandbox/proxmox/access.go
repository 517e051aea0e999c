package proxmox

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ticketLifetime is how long a login is good for.
const ticketLifetime = 2 * time.Hour

// access knows who may call the API. It never holds a token's secret or a password in any other place than memory.
type access struct {
	tokens    map[string]string // user@realm!name → secret
	passwords map[string]string // user@realm → password
	key       []byte            // signs tickets; another one after a restart, which ends all logins
}

func denied(message string) error {
	return &failure{code: http.StatusUnauthorized, message: message}
}

// identify returns the caller as a task's UPID names it: user@realm or user@realm!token.
func (a *access) identify(r *http.Request) (string, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		value, is := strings.CutPrefix(header, "PVEAPIToken=")
		id, secret, complete := strings.Cut(value, "=")
		if !is || !complete {
			return "", denied("No ticket")
		}
		known, exists := a.tokens[id]
		if !exists {
			user, name, _ := strings.Cut(id, "!")
			return "", denied(fmt.Sprintf("no such token '%s' for user '%s'", name, user))
		}
		if subtle.ConstantTimeCompare([]byte(known), []byte(secret)) != 1 {
			return "", denied("invalid token value!")
		}
		return id, nil
	}
	cookie, err := r.Cookie("PVEAuthCookie")
	if err != nil {
		return "", denied("No ticket")
	}
	ticket, err := url.PathUnescape(cookie.Value)
	if err != nil {
		ticket = cookie.Value
	}
	user, err := a.verify("PVE", ticket)
	if err != nil {
		return "", err
	}
	if r.Method != http.MethodGet {
		if signed, err := a.verify("CSRF", r.Header.Get("CSRFPreventionToken")); err != nil || signed != user {
			return "", denied("Permission denied - invalid csrf token")
		}
	}
	return user, nil
}

// login is POST /access/ticket. A valid ticket is as good as the password, which renews the login.
func (a *access) login(parameters url.Values) (any, error) {
	user := parameters.Get("username")
	if realm := parameters.Get("realm"); realm != "" && !strings.Contains(user, "@") {
		user += "@" + realm
	}
	password := parameters.Get("password")
	known, exists := a.passwords[user]
	if !exists || subtle.ConstantTimeCompare([]byte(known), []byte(password)) != 1 {
		if renewed, err := a.verify("PVE", password); err != nil || renewed != user {
			return nil, denied("authentication failure")
		}
	}
	return map[string]any{
		"username": user, "ticket": a.sign("PVE", user), "CSRFPreventionToken": a.sign("CSRF", user),
	}, nil
}

// sign makes "PVE:user@realm:TIME::SIGNATURE" with the time in hexadecimal seconds.
func (a *access) sign(purpose, user string) string {
	plain := fmt.Sprintf("%s:%s:%08X", purpose, user, time.Now().Unix())
	return plain + "::" + a.signature(plain)
}

func (a *access) signature(plain string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(plain))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (a *access) verify(purpose, ticket string) (user string, err error) {
	plain, signature, _ := strings.Cut(ticket, "::")
	parts := strings.Split(plain, ":")
	if len(parts) != 3 || parts[0] != purpose || !hmac.Equal([]byte(signature), []byte(a.signature(plain))) {
		return "", denied("permission denied - invalid " + purpose + " ticket")
	}
	seconds, err := strconv.ParseInt(parts[2], 16, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)) > ticketLifetime {
		return "", denied("permission denied - ticket expired")
	}
	return parts[1], nil
}
