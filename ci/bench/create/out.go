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
	Scale                 float64
	Destroy, Script, Wipe seconds
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
		{"destroy in the script's order", &figures.Script, func(w *world) (*outcome, error) { return w.destroy(ctx, scripted) }},
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
	fmt.Fprintf(&out, "Profile homelab, time scale %g:\n\n| | time | ratio |\n|---|---:|---:|\n", f.Scale)
	fmt.Fprintf(&out, "| destroy | %s | |\n", f.Destroy)
	fmt.Fprintf(&out, "| the same layers in the script's order, reversed | %s | %s |\n", f.Script, ratio(f.Destroy, f.Script))
	fmt.Fprintf(&out, "| nuclear-wipe | %s | %s |\n", f.Wipe, ratio(f.Wipe, f.Script))
	return out.String()
}
