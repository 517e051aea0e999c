// Package secrets resolves every secret that a cluster needs, the bootstrap ones from its SOPS file and the rest from
// Infisical, and holds them in memory. It never writes a value to a disk, a log or an error, and has this process redact what it
// learns.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/description"
)

// Inputs is what Resolve needs besides the description.
type Inputs struct {
	Folder string // folder of the description, where the SOPS file stands
	AgeKey string // text of the age key: lines of AGE-SECRET-KEY-1…, comments allowed

	Notify   func(message string) // told before each wait for Infisical to recover; nil is silence
	Deadline time.Duration        // for one operation with Infisical, its retries included; 0 is 2 minutes

	pace *pace
}

// Format shows the inputs without the key, under any verb.
func (in Inputs) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "secrets of %s", in.Folder) }

// LogValue is Format for slog.
func (in Inputs) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(in)) }

// MarshalJSON is Format for JSON.
func (in Inputs) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(in)), nil }

// Resolve decrypts the cluster's SOPS file and reads its path in Infisical with one list call. All that is missing or
// malformed in either of them is one *IncompleteError, a line for each. A SOPS file that cannot be read is an error before
// anything is asked of Infisical; an Infisical that cannot be asked is an *InfisicalError.
func Resolve(ctx context.Context, c *description.Cluster, in Inputs) (*Values, error) {
	redact.Add(identity.FindAllString(in.AgeKey, -1)...)
	file := filepath.Join(in.Folder, c.Secrets.SOPS)
	bootstrap, err := decrypt(file, in.AgeKey)
	if err != nil {
		return nil, err
	}
	values := NewValues()
	values.Add(bootstrap, SourceSOPS)

	place := placeOf(c)
	needs := needsOf(c)
	problems := needs.problems(bootstrap, SourceSOPS, func(n need) string {
		return fmt.Sprintf("%s: set it with \"sops edit %s\"", file, file)
	})
	id, secret := bootstrap[InfisicalClientID], bootstrap[InfisicalClientSecret]
	if id == "" || secret == "" {
		return nil, &IncompleteError{Cluster: c.Name, Problems: problems, NotAsked: place.String()}
	}

	caller := newSession(place, id, secret, in)
	found, err := caller.list(ctx)
	if err != nil {
		if len(problems) > 0 {
			return nil, errors.Join(&IncompleteError{Cluster: c.Name, Problems: problems}, err)
		}
		return nil, err
	}
	// The bootstrap file wins: it is what the cluster's states were encrypted with.
	remote := maps.Clone(found)
	for name := range bootstrap {
		delete(remote, name)
	}
	values.Add(remote, SourceInfisical)
	problems = append(problems, needs.problems(found, SourceInfisical, func(n need) string {
		return fmt.Sprintf("%s: add it there", place)
	})...)
	if len(problems) > 0 {
		return nil, &IncompleteError{Cluster: c.Name, Problems: problems}
	}
	values.kept().caller = caller
	return values, nil
}
