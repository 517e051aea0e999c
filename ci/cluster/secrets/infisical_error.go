package secrets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// InfisicalError is what Infisical answered, or did not, and where. No value is in it.
type InfisicalError struct {
	Place      string
	Status     int           // HTTP status; 0 where there was no answer
	Message    string        // Infisical's own, or the network's
	RetryAfter time.Duration // what Infisical asked to wait
	Tries      int
	Elapsed    time.Duration

	operation
	identity string // what the client id of the identity that asked is called
	kind     string
	cause    error
	retry    bool
	waits    bool  // for somebody's approval
	ended    error // of the context
}

// Error is one line: where, what was wanted, what came, how often it was tried, and what to do.
func (e *InfisicalError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: cannot %s: %s", e.Place, e.doing, e.what())
	if e.Tries > 1 || e.ended != nil {
		fmt.Fprintf(&text, ", after %d tries in %s", e.Tries, e.Elapsed.Round(100*time.Millisecond))
	}
	if fix := e.Fix(); fix != "" {
		text.WriteString("; " + fix)
	}
	return text.String()
}

func (e *InfisicalError) what() string {
	switch {
	case e.Status == 0 && e.Message == "":
		return "the time was over before it was asked"
	case e.Status == 0 || e.Status == http.StatusOK:
		return e.Message
	case e.Message == "":
		return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	default:
		return fmt.Sprintf("%d %s (%s)", e.Status, http.StatusText(e.Status), e.Message)
	}
}

// Fix is what to do; empty where nothing is known to help.
func (e *InfisicalError) Fix() string {
	switch {
	case errors.Is(e.ended, context.Canceled):
		return "interrupted"
	case e.Status == http.StatusUnauthorized && e.doing == "log in":
		return fmt.Sprintf("%s and %s in the SOPS file are not those of a machine identity there", e.identity, strings.TrimSuffix(e.identity, "ID")+"SECRET")
	case e.Status == http.StatusUnauthorized || e.tokenRefused():
		return "a new login did not help: check the identity's access token TTL and its trusted addresses"
	case e.Status == http.StatusForbidden && e.permission == folders:
		return fmt.Sprintf("make this folder in Infisical, or give the machine identity of %s \"Create\" on Secret Folders in the one above", e.identity)
	case e.Status == http.StatusForbidden && e.permission != "":
		return fmt.Sprintf("give the machine identity of %s the permission to %s secrets in this path (%s)", e.identity, e.permission, writable[e.permission])
	case e.Status == http.StatusForbidden && e.kind == kindPermissionDenied:
		return fmt.Sprintf("give the machine identity of %s %s on secrets in this path", e.identity, readable)
	case e.Status == http.StatusForbidden:
		return fmt.Sprintf("give the machine identity of %s access to this project, and %s on secrets in this path", e.identity, readable)
	case e.waits:
		return "have machine identities bypass the change policy of this path, or have the request approved in Infisical, then the same call"
	case e.Status == http.StatusNotFound:
		return "check secrets.infisical in the cluster's description"
	case e.Status == http.StatusTooManyRequests && e.RetryAfter > 0:
		return fmt.Sprintf("it asks to wait %s: run the same command again then", e.RetryAfter)
	case e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError:
		return "run the same command again later"
	case e.Status == 0 && e.retry:
		return "check that secrets.infisical.url can be reached from here"
	default:
		return ""
	}
}

// writable are the permissions to write, in the words of Infisical's roles and of its API, by what the latter calls them.
var writable = map[string]string{"create": `"Create" on Secrets`, "edit": `"Modify" on Secrets, edit in the API`}

// folders is the permission to make folders.
const folders = "secret-folders"

// Kinds of refusals. Any other 403 that is not about the token says what is wrong in its message alone.
const (
	kindPermissionDenied = "PermissionDenied"
	kindValueRefused     = "ForbiddenReadSecretError"
)

// valueRefused tells whether a list was refused since one of its values, or what one refers to, may not be read.
func (e *InfisicalError) valueRefused() bool {
	return e.Status == http.StatusForbidden && (strings.Contains(e.Message, "readValue") || strings.Contains(e.Message, "secret references"))
}

// withheld says why a secret was not given, from the refusal of it.
func (e *InfisicalError) withheld() *withheld {
	identity := "give the machine identity of " + e.identity
	switch e.kind {
	case kindPermissionDenied:
		return &withheld{"may not be seen by the identity, whether it is there or not,", identity + " " + readable + " on secrets in this path", true}
	case kindValueRefused:
		return &withheld{"may be seen but not read by the identity", identity + ` "Read Value" (readValue) on this secret`, false}
	default: // such as a reference to what may not be read, which the message names
		return &withheld{fmt.Sprintf("may not be read by the identity (%s)", strings.TrimSuffix(e.Message, ".")), identity + ` "Read Value" (readValue) on what this names`, false}
	}
}

// Unwrap is the network's error or the context's, nil for an answer.
func (e *InfisicalError) Unwrap() []error {
	var causes []error
	for _, cause := range []error{e.cause, e.ended} {
		if cause != nil {
			causes = append(causes, cause)
		}
	}
	return causes
}

// helps tells whether trying again can help.
func (e *InfisicalError) helps() bool { return e.retry }

// tokenRefused tells a token that is no longer taken from a permission that is not given: Infisical answers 401 to a
// revoked token and 403 of the kind TokenError to an expired one.
func (e *InfisicalError) tokenRefused() bool {
	return e.doing != "log in" && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.kind == "TokenError")
}

func (e *InfisicalError) alreadyExists() bool {
	return e.Status == http.StatusConflict ||
		e.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Message), "already exist")
}
