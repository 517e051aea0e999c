// Command red shows that the stories' tests can fail: of each story it takes out of castle what the story is held by, as spoils.yaml says,
// and runs one of the story's tests, which has to notice. It works on a clone, and never on the repository itself. It prints a table in
// Markdown, and fails unless every test was red.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

type options struct {
	root  string // the repository
	only  string // names of stories; empty: all
	write string // the page whose table is replaced
	quick bool   // leave out what needs a world or an engine
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.only, "only", "", "these stories only, by their names, with commas between them")
	flag.StringVar(&o.write, "write", "", "write the table into this page, such as docs/reliability.md, between its marks; it keeps there what other runs have shown")
	flag.BoolVar(&o.quick, "quick", false, "leave out the tests that start worlds or call an engine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := red(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "red:", err)
		os.Exit(1)
	}
}

func red(ctx context.Context, o options) error {
	all, err := load()
	if err != nil {
		return err
	}
	chosen, err := all.chosen(o.only, o.quick)
	if err != nil {
		return err
	}
	began := time.Now()
	copied, err := clone(ctx, o.root)
	if err != nil {
		return err
	}
	defer copied.remove()
	var seen []shown
	unnoticed := 0
	for _, s := range chosen {
		one, err := copied.try(ctx, s)
		if err != nil {
			return err
		}
		if one.outcome != wasRed {
			unnoticed++
			fmt.Fprintln(os.Stderr, one.output)
		}
		fmt.Fprintf(os.Stderr, "%-14s %s: without %s: %s, %.0f s\n", one.outcome, s.Story, s.Without, s.Test, one.took.Seconds())
		seen = append(seen, one)
	}
	when := fmt.Sprintf("%s, %d cores", began.Format(time.DateOnly), runtime.NumCPU())
	fmt.Printf("%s, %.0f min: %s", when, time.Since(began).Minutes(), markdown(rows(seen)))
	if o.write != "" {
		if err := keep(o.write, all, seen, when); err != nil {
			return err
		}
	}
	if unnoticed > 0 {
		return errors.New("not every test noticed what was taken out")
	}
	return nil
}
