package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v74/github"

	"tazlab.net/castle/ci/base/retry"
)

// Kinds of failure. Use errors.Is.
var (
	// ErrUnauthorized means that GitHub does not know the token.
	ErrUnauthorized = errors.New("the token was not accepted")
	// ErrForbidden means that the token may not do this.
	ErrForbidden = errors.New("the token may not do this")
	// ErrNotFound means that there is no such repository, or that the token may not see it: GitHub does not tell which.
	ErrNotFound = errors.New("no such repository, or the token may not see it")
	// ErrInvalid means that GitHub refused what was asked for.
	ErrInvalid = errors.New("GitHub refused it")
	// ErrRateLimited means that GitHub asked for a longer pause than there is time for.
	ErrRateLimited = errors.New("GitHub asks for a pause")
	// ErrClosed means that somebody closed the pull request without merging it.
	ErrClosed = errors.New("closed without being merged")
	// ErrNotMerged means that nobody merged the pull request in time.
	ErrNotMerged = errors.New("not merged in time")
)

// patience is how long a request is repeated where GitHub asks for a pause or has a fault of its own. It is longer than the
// minute that GitHub wants to be left alone for where it does not say when to come back.
const patience = 3 * time.Minute

// ask makes a request again while GitHub is busy or broken, for as long as there is time.
func ask[T any](ctx context.Context, r *Repository, doing string, request func(context.Context) (T, *github.Response, error)) (T, error) {
	policy := retry.Policy{Doing: doing, Pauses: retry.Growing(500*time.Millisecond, 10*time.Second), For: patience,
		Seen: func(err error) string { return r.secrets.Redact(err.Error()) }}
	var answer T
	err := policy.Do(ctx, func() error {
		var response *github.Response
		var err error
		if answer, response, err = request(ctx); err == nil {
			return nil
		}
		var raw *http.Response
		if response != nil {
			raw = response.Response
		}
		if wait, asked := pause(raw, time.Now()); asked {
			return retry.After(fmt.Errorf("%w of %s", ErrRateLimited, wait.Round(time.Second)), wait)
		}
		if raw != nil && raw.StatusCode < http.StatusInternalServerError {
			return retry.Permanent(r.explain(raw.StatusCode, err))
		}
		return err
	})
	if errors.Is(err, ErrRateLimited) {
		err = fmt.Errorf("%w, longer than this call may take: run it again then", err)
	}
	if err != nil {
		return answer, r.failed(doing, err)
	}
	return answer, nil
}

// pause is how long GitHub wants to be left alone, if it does: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api,
// "Exceeding the rate limit": by Retry-After, else where x-ratelimit-remaining is 0 until x-ratelimit-reset, else for a minute.
func pause(response *http.Response, now time.Time) (time.Duration, bool) {
	if response == nil {
		return 0, false
	}
	limited := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusForbidden
	if wait, ok := retry.ParseAfter(response.Header.Get("Retry-After"), now); ok && (limited || response.StatusCode == http.StatusServiceUnavailable) {
		return wait, true
	}
	if !limited {
		return 0, false
	}
	if response.Header.Get("X-Ratelimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(response.Header.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			return max(time.Second, time.Unix(reset, 0).Sub(now)), true
		}
		return time.Minute, true
	}
	return time.Minute, response.StatusCode == http.StatusTooManyRequests
}

// explain adds to an answer what to do about it.
func (r *Repository) explain(status int, err error) error {
	said := messageOf(err)
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w (%s): it is wrong or has expired; give another one with --git-token", ErrUnauthorized, said)
	case http.StatusForbidden:
		return fmt.Errorf("%w (%s): on GitHub it needs contents and pull requests, read and write, for this repository (a classic one: repo), "+
			"an organization with single sign-on must have authorized it, and the token of a workflow needs the setting "+
			`"Allow GitHub Actions to create and approve pull requests"`, ErrForbidden, said)
	case http.StatusNotFound, http.StatusMovedPermanently, http.StatusGone:
		return fmt.Errorf("%w (%s): check the URL %s, and that the token was given access to this repository", ErrNotFound, said, r.web)
	}
	return fmt.Errorf("%w (%d, %s)", ErrInvalid, status, said)
}

// messageOf is what GitHub said, its list of errors included, as one line.
func messageOf(err error) string {
	answer, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	parts := []string{answer.Message}
	for _, e := range answer.Errors {
		parts = append(parts, strings.TrimSpace(e.Field+" "+firstOf(e.Message, e.Code)))
	}
	return strings.Join(strings.Fields(strings.Join(parts, "; ")), " ")
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// failed is the error of one step. Whatever GitHub repeats in it, the token is not shown.
func (r *Repository) failed(doing string, err error) error {
	return &Error{Doing: doing, Repository: r.web, text: r.secrets.Redact(err.Error()), err: err}
}

// Error is a failure of one step; its text holds no secret.
type Error struct {
	Doing      string
	Repository string
	text       string
	err        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("GitHub, %s of %s: %s", e.Doing, e.Repository, e.text)
}

// Unwrap makes errors.Is find the kind.
func (e *Error) Unwrap() error { return e.err }
