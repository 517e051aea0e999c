//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/profile"
)

// within makes a world, does something in it, and ends it.
func (s *shop) within(ctx context.Context, name, profile string, scale float64, describe func(string) error, do func(*world) error) error {
	w, err := s.newWorld(ctx, name, profile, scale, describe)
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.close())
}

func (s *shop) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, values...))
}

// delayFigures compare create with the delays alone.
type delayFigures struct {
	Scale  float64      `json:"scale"`
	Uplink string       `json:"uplink,omitempty"`
	Rounds []delayRound `json:"rounds"`
}

type delayRound struct {
	Create, Second          seconds
	Path                    seconds            // of the delays alone, each layer pulling its own images
	Ahead                   seconds            // the same with all images pulled from the moment that a node runs
	PathLayers, AheadLayers map[string]seconds // their ends
	Layers                  map[string]seconds // ends of the layers
	Pulled                  int64              // bytes, by all nodes of the first create
	Line                    seconds            // that they take of the line that the nodes share, where they share one
}

// seconds is a length of time that JSON has as a number of seconds.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	return []byte(fmt.Sprintf("%.3f", time.Duration(s).Seconds())), nil
}

func (s seconds) String() string { return fmt.Sprintf("%.1f s", time.Duration(s).Seconds()) }

func (s *shop) delays(ctx context.Context) (*delayFigures, error) {
	figures := &delayFigures{Scale: s.scale, Uplink: s.uplink}
	for run := range s.delayRuns {
		var round delayRound
		err := s.within(ctx, "create", profile.NameHomelab, s.scale, nil, func(w *world) error {
			created, err := w.create(ctx, plain)
			if err != nil {
				return err
			}
			s.say("delays, run %d: create took %s", run+1, seconds(created.Wall))
			round.Create, round.Layers = seconds(created.Wall), ends(created)
			if err := errors.Join(round.path(w, created, s.scale), round.line(w)); err != nil {
				return err
			}
			again, err := w.create(ctx, plain)
			if err == nil {
				round.Second = seconds(again.Wall)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		figures.Rounds = append(figures.Rounds, round)
	}
	return figures, nil
}

// path computes the critical path of the delays for the order in which this run's VMs were begun.
func (r *delayRound) path(w *world, created *outcome, scale float64) error {
	description, err := config.Load(w.cluster)
	if err != nil {
		return err
	}
	output, err := os.ReadFile(filepath.Join(created.folder, "log", "platform.log"))
	if err != nil {
		return err
	}
	nodes := begun(description.Nodes, string(output))
	r.Path, r.PathLayers = criticalPath(profile.Homelab(), nodes).scaled(scale)
	r.Ahead, r.AheadLayers = aheadPath(profile.Homelab(), nodes).scaled(scale)
	return nil
}

// line tells what the nodes have pulled, and how long that takes of their line at the least.
func (r *delayRound) line(w *world) error {
	if w.shop.uplink == "" {
		return nil
	}
	width, err := profile.ParseWidth(w.shop.uplink)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "world", "kubernetes", "agent", "images.json"))
	if err != nil {
		return err
	}
	var pulled map[string]map[string]bool // by node, by image
	if err := json.Unmarshal(data, &pulled); err != nil {
		return err
	}
	for _, images := range pulled {
		for image := range images {
			r.Pulled += profile.ImageSize(image)
		}
	}
	r.Line = seconds(float64(r.Pulled) * 8 / width * w.shop.scale * float64(time.Second))
	return nil
}

// scaled are the end of all and the ends of the layers in a world's time.
func (d delays) scaled(scale float64) (total seconds, layers map[string]seconds) {
	scaled := func(d time.Duration) seconds { return seconds(float64(d) * scale) }
	return scaled(d.total()), map[string]seconds{"secrets": scaled(d.Secrets), "platform": scaled(d.Platform), "engine": scaled(d.Engine),
		"networking": scaled(d.Networking), "storage": scaled(d.Storage), "gitops": scaled(d.GitOps)}
}

// ends are when the layers ended, since the run's start.
func ends(o *outcome) map[string]seconds {
	made := map[string]seconds{}
	for _, layer := range o.Timeline.Layers {
		made[layer.Name] = seconds(layer.End())
	}
	return made
}

// layerNames in the order of their folders.
var layerNames = []string{"secrets", "platform", "engine", "networking", "storage", "gitops"}

// column picks a figure of each round.
func column[T any](rounds []T, pick func(T) seconds) []seconds {
	var all []seconds
	for _, round := range rounds {
		all = append(all, pick(round))
	}
	return all
}

func median(all []seconds) seconds {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// percentile of durations, the nearest rank.
func percentile(all []seconds, p int) seconds {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min((len(sorted)*p+99)/100, len(sorted))-1]
}

func ratio(a, b seconds) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func (f *delayFigures) markdown() string {
	create := median(column(f.Rounds, func(r delayRound) seconds { return r.Create }))
	second := median(column(f.Rounds, func(r delayRound) seconds { return r.Second }))
	path := median(column(f.Rounds, func(r delayRound) seconds { return r.Path }))
	ahead := median(column(f.Rounds, func(r delayRound) seconds { return r.Ahead }))
	var out strings.Builder
	fmt.Fprintf(&out, "Profile homelab, time scale %g, medians of %d:\n\n", f.Scale, len(f.Rounds))
	if f.Uplink != "" {
		fmt.Fprintf(&out, "All nodes pull through one line of %s, of which the critical paths know nothing.\n\n", f.Uplink)
	}
	fmt.Fprintln(&out, "| | time | ratio | bar |\n|---|---:|---:|---:|")
	fmt.Fprintf(&out, "| create | %s | | |\n", create)
	fmt.Fprintf(&out, "| critical path of the delays alone, each layer pulling its own images | %s | %s | 1.10 |\n", path, ratio(create, path))
	fmt.Fprintf(&out, "| the same with the images pulled from the moment that a node runs | %s | %s | |\n", ahead, ratio(create, ahead))
	if f.Uplink != "" {
		line := median(column(f.Rounds, func(r delayRound) seconds { return r.Line }))
		fmt.Fprintf(&out, "| the line of %s alone, for %d MiB | %s | %s | |\n", f.Uplink, f.Rounds[0].Pulled>>20, line, ratio(create, line))
	}
	fmt.Fprintf(&out, "| create again, nothing to change | %s | | 40 s |\n", second)
	fmt.Fprintln(&out, "\n| layer ends after | create | the delays alone | with images pulled ahead |\n|---|---:|---:|---:|")
	for _, layer := range layerNames {
		at := func(pick func(delayRound) map[string]seconds) seconds {
			return median(column(f.Rounds, func(r delayRound) seconds { return pick(r)[layer] }))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", layer, at(func(r delayRound) map[string]seconds { return r.Layers }),
			at(func(r delayRound) map[string]seconds { return r.PathLayers }),
			at(func(r delayRound) map[string]seconds { return r.AheadLayers }))
	}
	return out.String()
}

// overhead is what is left when all delays are 0.
type overhead struct {
	Rounds []overheadRound
	Phases []phases // of the recorded run
	Again  []phases // of the second create, recorded
}

type overheadRound struct {
	Create, Second, Destroy    seconds
	Own, World                 seconds // processor time of the first create: its own and its children's, and the world's
	SecondOwn                  seconds
	Layers                     map[string]seconds
	Starts                     map[string]seconds
	SecondLayers, DestroyLayer map[string]seconds
}

func (s *shop) overhead(ctx context.Context) (*overhead, error) {
	o := &overhead{}
	for run := range s.runs {
		err := s.within(ctx, "overhead", profile.NameNone, 0, nil, func(w *world) error {
			var round overheadRound
			created, err := w.create(ctx, plain)
			if err != nil {
				return err
			}
			again, err := w.create(ctx, plain)
			if err != nil {
				return err
			}
			destroyed, err := w.destroy(ctx, plain)
			if err != nil {
				return err
			}
			round.Create, round.Second, round.Destroy = seconds(created.Wall), seconds(again.Wall), seconds(destroyed.Wall)
			round.Own, round.World, round.SecondOwn = seconds(created.Own), seconds(created.World), seconds(again.Own)
			round.Layers, round.SecondLayers, round.DestroyLayer = took(created), took(again), took(destroyed)
			round.Starts = starts(created)
			o.Rounds = append(o.Rounds, round)
			s.say("overhead, run %d: create %s, again %s, destroy %s", run+1, round.Create, round.Second, round.Destroy)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return o, s.within(ctx, "recorded", profile.NameNone, 0, nil, func(w *world) error {
		created, err := w.create(ctx, recorded)
		if err != nil {
			return err
		}
		o.Phases = split(created)
		again, err := w.create(ctx, recorded)
		if err != nil {
			return err
		}
		o.Again = split(again)
		s.say("overhead, with the output's times noted: create %s, again %s", seconds(created.Wall), seconds(again.Wall))
		return nil
	})
}

func took(o *outcome) map[string]seconds {
	made := map[string]seconds{}
	for _, layer := range o.Timeline.Layers {
		made[layer.Name] = seconds(layer.Took)
	}
	return made
}

func starts(o *outcome) map[string]seconds {
	made := map[string]seconds{}
	for _, layer := range o.Timeline.Layers {
		made[layer.Name] = seconds(layer.Start)
	}
	return made
}

func (o *overhead) markdown() string {
	var out strings.Builder
	if len(o.Rounds) > 0 {
		o.rounds(&out)
	}
	fmt.Fprintf(&out, "Where a create's time goes:\n\n%s\nAnd a second one's:\n\n%s", phasesMarkdown(o.Phases), phasesMarkdown(o.Again))
	return out.String()
}

func (o *overhead) rounds(out io.Writer) {
	pick := func(what func(overheadRound) seconds) seconds { return median(column(o.Rounds, what)) }
	fmt.Fprintf(out, "All delays 0, medians of %d:\n\n| | time | bar | processor time of create and its children | of the world |\n|---|---:|---:|---:|---:|\n", len(o.Rounds))
	fmt.Fprintf(out, "| create | %s | 90 s | %s | %s |\n", pick(func(r overheadRound) seconds { return r.Create }),
		pick(func(r overheadRound) seconds { return r.Own }), pick(func(r overheadRound) seconds { return r.World }))
	fmt.Fprintf(out, "| create again, nothing to change | %s | 40 s | %s | |\n", pick(func(r overheadRound) seconds { return r.Second }),
		pick(func(r overheadRound) seconds { return r.SecondOwn }))
	fmt.Fprintf(out, "| destroy | %s | | | |\n", pick(func(r overheadRound) seconds { return r.Destroy }))
	fmt.Fprintln(out, "\n| layer | starts | create | again | destroy |\n|---|---:|---:|---:|---:|")
	for _, layer := range layerNames {
		of := func(m func(overheadRound) map[string]seconds) seconds {
			return pick(func(r overheadRound) seconds { return m(r)[layer] })
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", layer, of(func(r overheadRound) map[string]seconds { return r.Starts }),
			of(func(r overheadRound) map[string]seconds { return r.Layers }),
			of(func(r overheadRound) map[string]seconds { return r.SecondLayers }),
			of(func(r overheadRound) map[string]seconds { return r.DestroyLayer }))
	}
	fmt.Fprintln(out)
}

// gateFigures are the times from a webhook that serves to the end of its gate.
type gateFigures struct {
	Scale   float64      `json:"scale"`
	Samples []gateSample `json:"samples"`
}

type gateSample struct {
	Webhook string
	Latency seconds
	// Early: the webhook served before the gate was reached, so that the latency counts from there.
	Early bool
}

// gateScale makes the webhooks come after their gates, and the creations short.
const gateScale = 0.1

func (s *shop) gates(ctx context.Context) (*gateFigures, error) {
	figures := &gateFigures{Scale: gateScale}
	for run := range s.gateRuns {
		err := s.within(ctx, "gates", profile.NameHomelab, gateScale, nil, func(w *world) error {
			created, err := w.create(ctx, plain)
			if err != nil {
				return err
			}
			serves, err := w.serves()
			if err != nil {
				return err
			}
			samples := latencies(created, serves)
			figures.Samples = append(figures.Samples, samples...)
			s.say("gates, run %d: %v", run+1, samples)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// latencies finds the gates of webhooks in a time line, and for each the last moment before its end from which the webhook
// served.
func latencies(o *outcome, serves map[string][]time.Time) []gateSample {
	var samples []gateSample
	for _, layer := range o.Timeline.Layers {
		for _, gate := range layer.Gates {
			var service, namespace string
			if n, _ := fmt.Sscanf(gate.Name, "webhook %s in %s", &service, &namespace); n != 2 {
				continue
			}
			start := o.Timeline.Started.Add(time.Duration(gate.Start))
			end := o.Timeline.Started.Add(time.Duration(gate.End()))
			var from time.Time
			for _, at := range serves[namespace+"/"+service] {
				if !at.After(end) {
					from = at
				}
			}
			if from.IsZero() {
				continue
			}
			early := from.Before(start)
			if early {
				from = start
			}
			samples = append(samples, gateSample{service, seconds(end.Sub(from)), early})
		}
	}
	return samples
}

func (f *gateFigures) markdown() string {
	var waited, early []seconds
	for _, sample := range f.Samples {
		if sample.Early {
			early = append(early, sample.Latency)
		} else {
			waited = append(waited, sample.Latency)
		}
	}
	var out strings.Builder
	fmt.Fprintln(&out, "| from a webhook that serves to its gate open | gates | median | bar | 95 % | bar |\n|---|---:|---:|---:|---:|---:|")
	fmt.Fprintf(&out, "| the gate waited | %d | %.2f s | 0.3 s | %.2f s | 0.6 s |\n", len(waited), time.Duration(percentile(waited, 50)).Seconds(), time.Duration(percentile(waited, 95)).Seconds())
	if len(early) > 0 {
		fmt.Fprintf(&out, "| the webhook served before the gate was reached | %d | %.2f s | | %.2f s | |\n", len(early), time.Duration(percentile(early, 50)).Seconds(), time.Duration(percentile(early, 95)).Seconds())
	}
	return out.String()
}

// sizeFigures are a creation with so many nodes.
type sizeFigures struct {
	Size       string
	Create     seconds
	Own, World seconds
	Layers     map[string]seconds
}

func (s *shop) nodes(ctx context.Context) ([]sizeFigures, error) {
	var all []sizeFigures
	for text := range strings.SplitSeq(s.sizes, ",") {
		size, err := parseSize(text)
		if err != nil {
			return nil, err
		}
		err = s.within(ctx, "nodes", profile.NameNone, 0, size.describe, func(w *world) error {
			created, err := w.create(ctx, plain)
			if err != nil {
				return err
			}
			all = append(all, sizeFigures{size.String(), seconds(created.Wall), seconds(created.Own), seconds(created.World), took(created)})
			s.say("%s nodes: create %s", size, seconds(created.Wall))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", size, err)
		}
	}
	return all, nil
}

func nodesMarkdown(all []sizeFigures) string {
	var out strings.Builder
	fmt.Fprintln(&out, "All delays 0:\n\n| nodes | create | processor time of create and its children | of the world | platform | storage |\n|---|---:|---:|---:|---:|---:|")
	for _, f := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", f.Size, f.Create, f.Own, f.World, f.Layers["platform"], f.Layers["storage"])
	}
	return out.String()
}
