package hugobuild

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/retry"
)

// RetryFor is how long a download that fails is tried again, unless a call says otherwise.
const RetryFor = 4 * time.Minute

// firstPause comes before the second try. Each following one is longer, up to longestPause.
var firstPause = 2 * time.Second

const longestPause = 30 * time.Second

// passing are signs of a network or a server that may be back in a moment. A host that has no name, a certificate that is refused
// or a module that is missing will be the same then.
var passing = regexp.MustCompile(`(?i)connection (?:refused|reset|timed out)|i/o timeout|timeout exceeded|handshake timeout|unexpected EOF|` +
	`network is unreachable|temporary failure in name resolution|server misbehaving|` +
	`\b(?:429 Too Many|500 Internal|502 Bad|503 Service|504 Gateway)|returned error: (?:429|5\d\d)\b|` +
	`\b(?:EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|E429|E50\d)\b`)

// downloaded runs a program that downloads, and again for retryFor, where that is not 0, while lost finds in what it said why a download failed.
// Each failure is reported. The error of the last try is explained.
func downloaded(
	ctx context.Context, c command, retryFor time.Duration, doing string, lost func(said string) string, explain func(said string) error,
) (said string, err error) {
	tries, began := 0, time.Time{}
	policy := retry.Policy{
		Doing: doing, Pauses: retry.Growing(firstPause, longestPause), For: retryFor,
		Seen: func(error) string { return lost(said) },
	}
	if retryFor == 0 {
		policy.Tries = 1
	}
	err = policy.Do(ctx, func() error {
		var err error
		said, err = run(ctx, c)
		if tries++; tries == 1 {
			began = time.Now()
		}
		if failed := (*failure)(nil); !errors.As(err, &failed) {
			return retry.Permanent(err)
		}
		if err = explain(said); lost(said) == "" {
			return retry.Permanent(err)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && tries > 1 && lost(said) != "" {
		err = fmt.Errorf("%w; this was tried %d times in %s, and is for longer with --retry-for", err, tries, time.Since(began).Round(time.Second))
	}
	return said, err
}

// lostModule is why a Hugo module was not downloaded, where that may pass.
func lostModule(said string) string {
	match := moduleName.FindStringSubmatch(said)
	if !moduleFailure.MatchString(said) || match == nil || neverReleased.MatchString(match[2]) || !passing.MatchString(match[2]) {
		return ""
	}
	return match[1] + ": " + strings.Join(strings.Fields(match[2]), " ")
}

// lostPackage is why an npm package was not downloaded, where that may pass.
func lostPackage(said string) (seen string) {
	for _, line := range lines(said, npmError) {
		if passing.MatchString(line) {
			seen = line // the first has just the code
		}
	}
	return seen
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
