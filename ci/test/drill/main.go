// Command drill plays every story of ci/test/drill/stories and prints one table in Markdown: what was done to castle, what was seen,
// how it ended, and how long the call took that got over it. It fails unless every story that a test plays was played and held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/test/drill/marked"
	"tazlab.net/castle/ci/test/drill/stories"
)

type options struct {
	root  string // the repository
	only  string // names of stories; empty: all
	write string // the page whose table is replaced
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.only, "only", "", "play these stories only, by their names, with commas between them")
	flag.StringVar(&o.write, "write", "", "write the table into this page, such as docs/reliability.md, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := drill(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		os.Exit(1)
	}
}

func drill(ctx context.Context, o options) error {
	all, err := chosen(o.only)
	if err != nil {
		return err
	}
	began, played := time.Now(), newResults()
	for _, step := range steps(all, o.only == "") {
		fmt.Fprintf(os.Stderr, "== %s\n", step.name)
		if err := step.run(ctx, o.root, os.Stderr, played.take); err != nil {
			return err
		}
	}
	told := tabulate(all, played)
	if told.Failed > 0 {
		fmt.Fprint(os.Stderr, played.failures())
	}
	text := fmt.Sprintf("%s, %d cores, %s: %s", began.Format(time.DateOnly), runtime.NumCPU(), short(time.Since(began)), told.Markdown())
	fmt.Print(text)
	if o.write != "" {
		if err := marked.Write(o.write, "drill", text); err != nil {
			return err
		}
	}
	if told.Failed > 0 || len(played.broken) > 0 {
		return errors.New("not every story held")
	}
	return nil
}

// chosen are the stories of those names.
func chosen(names string) ([]stories.Story, error) {
	all := stories.All()
	if names == "" {
		return all, nil
	}
	var some []stories.Story
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(story stories.Story) bool { return story.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no story %q in ci/test/drill/stories", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}
