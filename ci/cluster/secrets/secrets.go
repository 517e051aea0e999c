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
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/config"
)

// Inputs is what Resolve needs besides the description.
type Inputs struct {
	Folder string // folder of the description, where the SOPS files stand
	AgeKey string // text of the age key: lines of AGE-SECRET-KEY-1…, comments allowed
	Create bool   // the cluster is to be made, which takes the identities that go into it as well

	Deadline time.Duration // for one operation with Infisical, its retries included; 0 is 2 minutes

	pace *pace
}

// Format shows the inputs without the key, under any verb.
func (in Inputs) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "secrets of %s", in.Folder) }

// LogValue is Format for slog.
func (in Inputs) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(in)) }

// MarshalJSON is Format for JSON.
func (in Inputs) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(in)), nil }

// Resolve decrypts the cluster's SOPS files and reads its two folders in Infisical, where it has one, with one list call for each, and where that
// leaves something out, one for each secret. All that is missing or
// malformed in any of them is one *IncompleteError, a line for each. SOPS files that cannot be read are an error before
// anything is asked of Infisical; an Infisical that cannot be asked is an *InfisicalError. For a create it proves beside that what the identities may
// that go into the cluster, else a *ReadersError.
func Resolve(ctx context.Context, c *config.Cluster, in Inputs) (*Values, error) {
	files := openFiles(c, in)
	if err := files.err(); err != nil {
		return nil, err
	}
	bootstrap, problems := files.all()
	addSandboxReaders(c, bootstrap)
	values := NewValues()
	values.Add(bootstrap, SourceSOPS)

	needs := needsOf(c).without(in.Create)
	problems = append(problems, needs.problems(bootstrap, nil, SourceSOPS, files.where)...)
	if !c.Secrets.Infisical.Has() {
		if len(problems) > 0 {
			return nil, &IncompleteError{Cluster: c.Name, Problems: problems}
		}
		return values, nil
	}
	place := placeOf(c)
	if bootstrap[InfisicalClientID] == "" || bootstrap[InfisicalClientSecret] == "" {
		return nil, &IncompleteError{Cluster: c.Name, Problems: problems, NotAsked: place.String()}
	}

	caller := newSession(place, bootstrap, InfisicalClientID, InfisicalClientSecret, in)
	readers := func() (bool, error) { return false, nil }
	if in.Create && !slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Name, "INFISICAL_") }) {
		readers = sync.OnceValues(func() (bool, error) { return Readers(ctx, c, bootstrap, in) })
		go func() { _, _ = readers() }()
	}
	found, err := caller.read(ctx, slices.Concat(needs, products))
	shared, wrong := readers()
	if err != nil {
		err = errors.Join(err, wrong)
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
		return nil, errors.Join(&IncompleteError{Cluster: c.Name, Problems: problems}, wrong)
	}
	if wrong != nil {
		return nil, wrong
	}
	k := values.kept()
	k.caller, k.found, k.shared = caller, found, shared
	return values, nil
}
