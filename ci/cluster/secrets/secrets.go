// Package secrets resolves every secret that a cluster needs, the bootstrap ones from its SOPS files and the rest from
// Infisical or these files, too, and holds them in memory. It never writes a value to a disk, a log or an error, and has this process redact what it
// learns.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster/description"
)

// Inputs is what Resolve needs besides the description.
type Inputs struct {
	Folder string // folder of the description, where the SOPS files stand
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

// Resolve decrypts the cluster's SOPS files and reads its path in Infisical, where it has one, with one list call, and where that leaves
// something out, one for each. All that is missing or
// malformed in any of them is one *IncompleteError, a line for each. SOPS files that cannot be read are an error before
// anything is asked of Infisical; an Infisical that cannot be asked is an *InfisicalError.
func Resolve(ctx context.Context, c *description.Cluster, in Inputs) (*Values, error) {
	files := openFiles(c, in)
	if err := files.err(); err != nil {
		return nil, err
	}
	bootstrap, problems := files.all()
	values := NewValues()
	values.Add(bootstrap, SourceSOPS)

	needs := needsOf(c)
	problems = append(problems, needs.problems(bootstrap, nil, SourceSOPS, files.where)...)
	if !c.Secrets.Infisical.Has() {
		if len(problems) > 0 {
			return nil, &IncompleteError{Cluster: c.Name, Problems: problems}
		}
		return values, nil
	}
	place := placeOf(c)
	id, secret := bootstrap[InfisicalClientID], bootstrap[InfisicalClientSecret]
	if id == "" || secret == "" {
		return nil, &IncompleteError{Cluster: c.Name, Problems: problems, NotAsked: place.String()}
	}

	caller := newSession(place, id, secret, in)
	found, err := caller.read(ctx, slices.Concat(needs, products))
	if err != nil {
		if len(problems) > 0 {
			return nil, errors.Join(&IncompleteError{Cluster: c.Name, Problems: problems}, err)
		}
		return nil, err
	}
	// The bootstrap files win: they hold what the cluster's states were encrypted with.
	remote := maps.Clone(found.values)
	for name := range bootstrap {
		delete(remote, name)
	}
	values.Add(remote, SourceInfisical)
	problems = append(problems, needs.problems(found.values, found.withheld, SourceInfisical, place.where)...)
	if len(problems) > 0 {
		return nil, &IncompleteError{Cluster: c.Name, Problems: problems}
	}
	values.kept().caller = caller
	return values, nil
}
