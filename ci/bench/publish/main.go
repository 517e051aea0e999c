// Command publish measures publish-blog against the plain sequence that it replaces, on this machine and in one run,
// and prints a table in Markdown.
//
// The plain sequence is what a script would do on the host: hugo, gzip, one layer pushed by go-containerregistry (what
// crane append does), sed, git push. It knows neither retries nor checks, and it is what the containers and caches have
// to pay for. Figures are medians; machines differ and are noisy, so the ratio of the two is the figure to look at.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"tazlab.net/castle/ci/bench/sitegen"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/realsites"
)

type options struct {
	pages, runs int
	root, hugo  string
	program     string
	only, site  string
	// For new engines: the castle program, and the cache folder that it has made ready.
	hostProgram, cache string
}

func main() {
	var o options
	flag.IntVar(&o.pages, "pages", sitegen.DefaultPages, "pages of the large site")
	flag.IntVar(&o.runs, "runs", 3, "runs of each case; the median counts")
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.hugo, "hugo", "hugo", "the hugo command for the plain sequence")
	flag.StringVar(&o.program, "castle-publish", "castle-publish", "castle-publish, for the memory that it takes")
	flag.StringVar(&o.only, "only", "", "measure one part only: sites, rollouts, or cold, which starts new engines")
	flag.StringVar(&o.site, "site", "", "measure only the sites whose names begin with this, such as Blowfish")
	flag.StringVar(&o.hostProgram, "castle", "castle", "the castle program, for the cold part")
	flag.StringVar(&o.cache, "cache", "", "the cache folder that castle has made ready, for the cold part")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// site is one of the blogs that are published.
type site struct {
	name string
	// path is the site's folder in the working tree.
	path string
	// write makes the site in an empty folder, edit changes one comma. A site at the top of the tree brings its own
	// repository.
	write func(ctx context.Context, dir string) error
	edit  func(dir string, run int) error
}

// row is one line of the table.
type row struct {
	site, publishCase    string
	castle, plain, empty []published // empty are calls of an empty module in between
}

// published is what one of the two ways took, and what it sent to the registry.
type published struct {
	took time.Duration
	sent int64 // bytes
	// parts are what publish-blog took, by its parts.
	parts []report.Step
}

// ownBlog is the blog of this repository.
func ownBlog(o options) site {
	return site{
		name:  "this repository's blog",
		path:  "blog",
		write: func(_ context.Context, dir string) error { return copyBlog(o.root, dir) },
		edit:  editAbout,
	}
}

// parts are what is measured, by the names that -only takes.
var parts = []struct {
	name    string
	measure func(context.Context, options) error
	asked   bool // only where it is asked for by name
}{{"sites", measureSites, false}, {"rollouts", measureRollouts, false}, {"cold", measureCold, true}}

func run(ctx context.Context, o options) error {
	known := false
	for _, part := range parts {
		if o.only == "" && part.asked || o.only != "" && o.only != part.name {
			continue
		}
		known = true
		if err := part.measure(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if !known {
		return fmt.Errorf("no part %q: there are sites, rollouts and cold", o.only)
	}
	return nil
}

// measureSites compares publish-blog with the plain sequence on each site.
func measureSites(ctx context.Context, o options) error {
	sites := []site{
		ownBlog(o),
		{
			name: "Blowfish, 900 pages",
			path: ".",
			write: func(ctx context.Context, dir string) error {
				return realsites.Heavy(time.Now().UnixNano()).Write(ctx, dir)
			},
			edit: func(dir string, run int) error { return realsites.TouchHeavy(dir, 1+run) },
		},
		{
			name: fmt.Sprintf("%d pages", o.pages),
			path: "blog",
			write: func(ctx context.Context, dir string) error {
				return sitegen.Generate(ctx, sitegen.Options{
					Dir: dir, Pages: o.pages, Seed: time.Now().UnixNano(), ThemeDir: filepath.Join(o.root, "blog/themes/castle"),
				})
			},
			edit: func(dir string, run int) error { return sitegen.Touch(dir, 1+run) },
		},
	}
	var rows []row
	var memory []string
	for _, site := range sites {
		if !strings.HasPrefix(site.name, o.site) {
			continue
		}
		measured, err := measure(ctx, o, site)
		if err != nil {
			return fmt.Errorf("%s: %w", site.name, err)
		}
		rows = append(rows, measured.rows...)
		memory = append(memory, fmt.Sprintf("| %s | %.0f MB |", site.name, float64(measured.peakMemory)/1e6))
	}
	fmt.Println("| site | case | publish-blog | plain sequence | ratio | sent | plain |\n|---|---|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		castle, plain := median(r.castle), median(r.plain)
		fmt.Printf("| %s | %s | %.2f s | %.2f s | %.2f | %.2f MB | %.2f MB |\n", r.site, r.publishCase, castle.took.Seconds(), plain.took.Seconds(),
			castle.took.Seconds()/plain.took.Seconds(), float64(castle.sent)/1e6, float64(plain.sent)/1e6)
	}
	printSplit(rows)
	fmt.Println("\n| site | peak memory of castle's own process (assembling the image) |\n|---|---:|")
	for _, line := range memory {
		fmt.Println(line)
	}
	return nil
}

type measurement struct {
	rows       []row
	peakMemory int64
}

// measure runs all cases of one site: castle and the plain sequence in turn, so that a machine that gets slower gets
// slower for both.
func measure(ctx context.Context, o options, s site) (measurement, error) {
	var m measurement
	cold, change, none := row{site: s.name, publishCase: "cold"}, row{site: s.name, publishCase: "one comma changed"}, row{site: s.name, publishCase: "no change"}
	for range o.runs {
		w, err := newWorkshop(ctx, o, s)
		if err != nil {
			return m, err
		}
		// Each case twice: castle first, then plain, on the same commit.
		steps := []struct {
			row  *row
			edit bool
		}{{&cold, false}, {&change, true}, {&none, false}}
		if err := w.commit(ctx, "Write the site"); err != nil {
			return m, err
		}
		for i, step := range steps {
			if step.edit {
				if err := errors.Join(s.edit(w.blog(), i), w.commit(ctx, "Change a comma")); err != nil {
					return m, err
				}
			}
			empty, err := w.empty(ctx)
			if err != nil {
				return m, fmt.Errorf("an empty module: %w", err)
			}
			step.row.empty = append(step.row.empty, published{took: empty})
			var result report.Result
			w.traced = &spans{ended: map[string]*tracepb.Span{}}
			castle, err := timed(func() (sent int64, err error) {
				result, err = w.publish(ctx)
				return result.Image.UploadedBytes, err
			})
			if err == nil {
				castle.parts, err = w.traced.split(castle.took, result)
			}
			if err != nil {
				return m, fmt.Errorf("publish-blog, %s: %w", step.row.publishCase, err)
			}
			step.row.castle = append(step.row.castle, castle)
			plain, err := timed(func() (int64, error) { return w.plain(ctx) })
			if err != nil {
				return m, fmt.Errorf("plain sequence, %s: %w", step.row.publishCase, err)
			}
			step.row.plain = append(step.row.plain, plain)
			fmt.Fprintf(os.Stderr, "%s, %s: %s against %s, an empty module's call %s; of it", s.name, step.row.publishCase,
				castle.took.Round(10*time.Millisecond), plain.took.Round(10*time.Millisecond), empty.Round(10*time.Millisecond))
			for _, part := range castle.parts {
				fmt.Fprintf(os.Stderr, ", %s %.2f s", part.Name, part.Seconds)
			}
			fmt.Fprintln(os.Stderr)
		}
		peak, err := w.memory(ctx)
		if err != nil {
			return m, err
		}
		m.peakMemory = max(m.peakMemory, peak)
		if err := w.close(); err != nil {
			return m, err
		}
	}
	m.rows = []row{cold, change, none}
	return m, nil
}

func timed(publish func() (sent int64, err error)) (published, error) {
	start := time.Now()
	sent, err := publish()
	return published{took: time.Since(start), sent: sent}, err
}

// median is the run whose time is the median.
func median(all []published) published {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b published) int { return cmp.Compare(a.took, b.took) })
	return sorted[len(sorted)/2]
}
