//go:build linux

// Command create measures `castle-cluster create` in the proving ground, on this machine and in one run, and prints tables in
// Markdown: against the critical path of the proving ground's own delays, with all delays at 0, with more nodes, and the ways out. Every world has a network namespace of its own.
//
// Machines differ and are noisy, so the ratios are the figures to look at.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// The parts that can be chosen.
const (
	partDelays   = "delays"   // scale 1, homelab: create and a second create
	partOverhead = "overhead" // all delays 0: create, a second create, destroy, and where the time goes
	partGates    = "gates"    // from a webhook that serves to its gate
	partNodes    = "nodes"    // the same with more nodes
	partOut      = "out"      // scale 1, homelab: destroy and nuclear-wipe
)

var parts = []string{partDelays, partOverhead, partGates, partNodes, partOut}

type options struct {
	root, castle, cache string
	work                string
	parts               []string
	delayRuns, runs     int
	gateRuns            int
	scale               float64
	uplink              string
	sizes               string
	slack               time.Duration
	out                 string
	terragrunt          string
	variables           listFlag
}

// listFlag is a flag that may be given several times.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }

func (l *listFlag) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	if code, is := errors.AsType[exitCode](err); is {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func start(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "play" {
		return play(args[1:])
	}
	if len(args) > 0 && args[0] == "tee" {
		return tee(args[1:])
	}
	var o options
	var chosen string
	flags := flag.NewFlagSet("create", flag.ExitOnError)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.castle, "castle", "castle", "castle's program")
	flags.StringVar(&o.cache, "cache", "", "castle's cache folder, for the tools; empty: castle's own default")
	flags.StringVar(&o.work, "work", "", "keep everything that the runs leave in this folder; empty: a temporary one, removed at the end")
	flags.StringVar(&chosen, "parts", strings.Join(parts, ","), "what to measure")
	flags.IntVar(&o.delayRuns, "delay-runs", 1, "runs of the part delays, five minutes each; the median counts")
	flags.IntVar(&o.runs, "runs", 3, "runs of the part overhead; the median counts")
	flags.IntVar(&o.gateRuns, "gate-runs", 10, "creations of the part gates, each with two gates")
	flags.Float64Var(&o.scale, "scale", 1, "time scale of the parts delays and out")
	flags.StringVar(&o.uplink, "uplink", "", "width of the line that all nodes pull through in the parts delays and out, as in 100Mbit; empty: each image takes its delay")
	flags.StringVar(&o.sizes, "sizes", "3+2,5+20,7+100", "control planes and workers of the part nodes")
	flags.DurationVar(&o.slack, "deadline", 15*time.Minute, "how long one create or destroy may take")
	flags.StringVar(&o.out, "json", "", "write all figures to this file as well")
	flags.StringVar(&o.terragrunt, "layers", "", "another folder of layers than terragrunt/ of the repository, to try a change")
	flags.Var(&o.variables, "set", "NAME=VALUE for Terragrunt and its children, to try an option; may be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.uplink != "" {
		if _, err := profile.ParseWidth(o.uplink); err != nil {
			return err
		}
	}
	for part := range strings.SplitSeq(chosen, ",") {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("no part %q: there are %s", part, strings.Join(parts, ", "))
		}
		o.parts = append(o.parts, part)
	}
	return measure(ctx, o)
}

// figures is everything that was measured, as -json has it.
type figures struct {
	Machine  string        `json:"machine"`
	Delays   *delayFigures `json:"delays,omitempty"`
	Overhead *overhead     `json:"overhead,omitempty"`
	Gates    *gateFigures  `json:"gates,omitempty"`
	Nodes    []sizeFigures `json:"nodes,omitempty"`
	Out      *outFigures   `json:"out,omitempty"`
}

func measure(ctx context.Context, o options) (err error) {
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "castle-bench-*"); err != nil {
			return err
		}
		defer os.RemoveAll(o.work)
	}
	s, err := newShop(ctx, o)
	if err != nil {
		return err
	}
	all := figures{Machine: machine()}
	for _, part := range o.parts {
		var table string
		switch part {
		case partDelays:
			all.Delays, err = s.delays(ctx)
			if err == nil {
				table = all.Delays.markdown()
			}
		case partOverhead:
			all.Overhead, err = s.overhead(ctx)
			if err == nil {
				table = all.Overhead.markdown()
			}
		case partGates:
			all.Gates, err = s.gates(ctx)
			if err == nil {
				table = all.Gates.markdown()
			}
		case partNodes:
			all.Nodes, err = s.nodes(ctx)
			if err == nil {
				table = nodesMarkdown(all.Nodes)
			}
		case partOut:
			all.Out, err = s.out(ctx)
			if err == nil {
				table = all.Out.markdown()
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		fmt.Println(table)
	}
	if o.out == "" {
		return nil
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(data, '\n'), 0o644)
}

// machine tells what the figures depend on most.
func machine() string {
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores, load %s at the start", cores(), first)
}

func absolute(names ...*string) error {
	for _, name := range names {
		made, err := filepath.Abs(*name)
		if err != nil {
			return err
		}
		*name = made
	}
	return nil
}
