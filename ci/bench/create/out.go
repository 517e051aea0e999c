//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/sandbox/profile"
)

// outFigures are how long it takes to be rid of a cluster.
type outFigures struct {
	Scale         float64
	Destroy, Wipe seconds
}

// out makes a cluster without delays for each of the ways, and measures the way out with a homelab's.
func (s *shop) out(ctx context.Context) (*outFigures, error) {
	figures := &outFigures{Scale: s.scale}
	for _, way := range []struct {
		name string
		into *seconds
		do   func(*world) (*outcome, error)
	}{
		{"destroy", &figures.Destroy, func(w *world) (*outcome, error) { return w.destroy(ctx, plain) }},
		{"nuclear-wipe", &figures.Wipe, func(w *world) (*outcome, error) {
			return w.castle(ctx, plain, "nuclear-wipe", "--confirm=sandbox")
		}},
	} {
		err := s.within(ctx, "out", profile.NameNone, 0, nil, func(w *world) error {
			if _, err := w.create(ctx, plain); err != nil {
				return err
			}
			if err := w.restart(ctx, profile.NameHomelab, s.scale); err != nil {
				return err
			}
			took, err := way.do(w)
			if err != nil {
				return err
			}
			*way.into = seconds(took.Wall)
			s.say("out: %s took %s", way.name, *way.into)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return figures, nil
}

func (f *outFigures) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Profile homelab, time scale %g:\n\n| | time |\n|---|---:|\n", f.Scale)
	fmt.Fprintf(&out, "| destroy | %s |\n", f.Destroy)
	fmt.Fprintf(&out, "| nuclear-wipe | %s |\n", f.Wipe)
	return out.String()
}
