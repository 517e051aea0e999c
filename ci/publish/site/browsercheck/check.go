package browsercheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/publish/site/browsercheck/pagechoice"
	"tazlab.net/castle/ci/publish/site/builtsite"
)

// What Options say when they say nothing.
const (
	DefaultPages        = 40
	DefaultPageDeadline = 30 * time.Second
	DefaultDeadline     = 15 * time.Minute
)

// DefaultWidths are those of a phone and of a desk, in CSS pixels.
var DefaultWidths = []int{390, 1280}

// Options say what is opened, and how.
type Options struct {
	// URL is the server of the site, for example http://site:8080. It has the site below BaseURL's path.
	URL string
	// Dir is the built site, for example Hugo's public folder: pages are chosen from it.
	Dir string
	// BaseURL is what the site is built for, for example https://example.org/blog/. The browser sees the site there. Empty:
	// what the site says of itself (builtsite.AddressOf); where it says nothing, a name that nobody has, by HTTPS.
	BaseURL string
	// Widths of the window, in CSS pixels. Below 768 it is a phone's. Empty: DefaultWidths.
	Widths []int
	// Pages is how many are opened at most; 0: DefaultPages.
	Pages int
	// PageDeadline is for one page at one width, Deadline for all; 0: DefaultPageDeadline and DefaultDeadline.
	PageDeadline, Deadline time.Duration
	// Program is the browser, a name or path; empty: the first of Programs that is there.
	Program string
	// Offline lets the browser find no host but the site's.
	Offline bool
	// Screenshots is a folder for a picture of each page at each width; empty: none are taken.
	Screenshots string
}

func (o *Options) complete() (server *url.URL, err error) {
	if len(o.Widths) == 0 {
		o.Widths = DefaultWidths
	}
	if o.Pages == 0 {
		o.Pages = DefaultPages
	}
	if o.PageDeadline == 0 {
		o.PageDeadline = DefaultPageDeadline
	}
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	server, err = httpURL("the site's URL", o.URL)
	mistakes := []error{err}
	if o.BaseURL != "" {
		_, err := httpURL("the base URL", o.BaseURL)
		mistakes = append(mistakes, err)
	}
	for _, width := range o.Widths {
		if width < 200 || width > 4000 {
			mistakes = append(mistakes, fmt.Errorf("a width of %d: want 200 to 4000 pixels", width))
		}
	}
	if o.Pages < 0 || o.PageDeadline < 0 || o.Deadline < 0 {
		mistakes = append(mistakes, errors.New("the number of pages and the deadlines must not be negative"))
	}
	o.Program, err = findProgram(o.Program)
	return server, errors.Join(append(mistakes, err)...)
}

// unopened is what is seen of a page that the time for all did not suffice for.
func (o *Options) unopened() *sight {
	return &sight{problems: []problem{o.late("and some pages were not opened")}}
}

func (o *Options) late(what string) problem {
	return problem{rule: ruleNotOpened, cause: fmt.Sprintf("the time for all pages is up after %s, %s", o.Deadline, what)}
}

func httpURL(what, text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return nil, fmt.Errorf("%s is %q: want a full address, as in https://example.org/", what, text)
	}
	return address, nil
}

// Check opens the site and returns all that it found. An error means that nothing could be opened; findings are no error.
func Check(ctx context.Context, o Options) (Report, error) {
	began := time.Now()
	server, err := o.complete()
	if err != nil {
		return Report{}, err
	}
	base, err := o.address()
	if err != nil {
		return Report{}, err
	}
	chosen, err := pagechoice.Choose(ctx, o.Dir, base, o.Pages)
	if err != nil {
		return Report{}, err
	}
	policy, err := probe(ctx, server)
	if err != nil {
		return Report{}, err
	}
	if o.Screenshots != "" {
		if err := os.MkdirAll(o.Screenshots, 0o755); err != nil {
			return Report{}, fmt.Errorf("make the folder for screenshots: %w", err)
		}
	}

	timed, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	report := Report{
		Site: base.String(), Server: server.String(), Policy: policy, Widths: o.Widths,
		Pages: chosen.Pages, Of: chosen.Of, LeftOut: chosen.LeftOut, Findings: []Finding{}, Foreign: []Foreign{},
	}
	var views []view
	for _, page := range chosen.Pages {
		for _, width := range o.Widths {
			views = append(views, view{page, width})
		}
	}
	with := side{options: o, server: server, base: base, pictures: o.Screenshots != ""}
	seen, version, err := with.see(timed, views)
	if err != nil {
		return Report{}, err
	}
	report.Browser = version
	var doubtful []view
	for i, v := range views {
		if seen[i].headersMatter() {
			doubtful = append(doubtful, v)
		}
	}
	without := side{options: o, server: server, base: base, bare: true}
	bare, _, err := without.see(timed, doubtful)
	if err != nil {
		return Report{}, err
	}
	var late []view
	anyway := map[string]map[string]bool{} // by page, problems that are there without the headers
	for i, v := range doubtful {
		if anyway[v.page.Path] == nil {
			anyway[v.page.Path] = map[string]bool{}
		}
		for _, found := range bare[i].problems {
			anyway[v.page.Path][found.rule+" "+found.cause] = true
			if found.rule == ruleNotOpened {
				late = append(late, v)
			}
		}
	}
	collected := newCollection()
	for _, v := range late {
		collected.add(v, &sight{problems: []problem{o.late("and some pages were not compared with themselves without the headers")}}, nil)
	}
	for i, v := range views {
		collected.add(v, seen[i], anyway[v.page.Path])
		if seen[i].picture != nil {
			name := filepath.Join(o.Screenshots, pictureName(v))
			if err := os.WriteFile(name, seen[i].picture, 0o644); err != nil {
				return Report{}, fmt.Errorf("keep a screenshot: %w", err)
			}
		}
	}
	collected.into(&report)
	report.Seconds = time.Since(began).Seconds()
	return report, ctx.Err()
}

// address is where the browser is to see the site.
func (o *Options) address() (*url.URL, error) {
	if _, err := readHome(o.Dir); err != nil {
		return nil, err
	}
	if o.BaseURL != "" {
		return url.Parse(o.BaseURL)
	}
	return builtsite.AddressOf(o.Dir), nil
}

// readHome reads the home page, without which a folder is no site.
func readHome(dir string) ([]byte, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: name the one that the site is built into", dir)
	}
	home, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		return nil, fmt.Errorf("%s has no index.html: build the site first, or name the folder that holds its home page", dir)
	}
	return home, nil
}

func pictureName(v view) string {
	name := strings.ReplaceAll(strings.Trim(unescaped(v.page.Path), "/"), "/", "_")
	if v.page.Status == 404 {
		name = "404"
	}
	return fmt.Sprintf("%s-%d.png", cmp.Or(name, "home"), v.width)
}

// side is the site with its headers, or without.
type side struct {
	options      Options
	server, base *url.URL
	bare         bool
	pictures     bool
}

// see opens the views, as many at once as there are processors. Where the browser itself ends, the views that it had open get
// another one, and one after the other, so that the guilty one is alone with it.
func (s side) see(ctx context.Context, views []view) (seen []*sight, version string, err error) {
	seen = make([]*sight, len(views))
	if len(views) == 0 {
		return seen, "", nil
	}
	if ctx.Err() != nil {
		for i := range seen {
			seen[i] = s.options.unopened()
		}
		return seen, "", nil
	}
	f, err := openFront(s.server, s.base, s.bare)
	if err != nil {
		return nil, "", fmt.Errorf("listen for the browser: %w", err)
	}
	defer f.close()
	running, err := startChromium(ctx, s.options.Program, f, s.options.Offline)
	if err != nil {
		return nil, "", err
	}
	defer func() { running.close() }()
	if version, err = running.version(); err != nil {
		return nil, "", fmt.Errorf("ask the browser for its version: %w", err)
	}
	var again []int
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(min(runtime.GOMAXPROCS(0), 4))
	for i, v := range views {
		group.Go(func() error {
			var err error
			if seen[i], err = running.visit(ctx, v, s.base, s.options.PageDeadline, s.pictures); err != nil {
				mu.Lock()
				again = append(again, i)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in again
	for _, i := range again {
		seen[i], err = s.seeAlone(ctx, &running, f, views[i])
		if err != nil {
			return nil, "", err
		}
	}
	return seen, version, nil
}

// seeAlone gives a view a second chance; what fails then is the page's own finding. The error is that no browser starts.
func (s side) seeAlone(ctx context.Context, running **chromium, f *front, v view) (*sight, error) {
	if ctx.Err() == nil && (*running).ctx.Err() != nil {
		(*running).close()
		next, err := startChromium(ctx, s.options.Program, f, s.options.Offline)
		if err != nil {
			return nil, err
		}
		*running = next
	}
	seen, err := (*running).visit(ctx, v, s.base, s.options.PageDeadline, s.pictures)
	switch {
	case ctx.Err() != nil:
		return s.options.unopened(), nil
	case err != nil:
		return &sight{problems: []problem{{rule: ruleCrash, cause: firstLine(err.Error())}}}, nil
	}
	return seen, nil
}

// headersMatter says whether there is anything that may come from a header.
func (s *sight) headersMatter() bool {
	for _, found := range s.problems {
		if rules[found.rule].compared {
			return true
		}
	}
	return false
}

func trimSlash(path string) string { return strings.TrimSuffix(path, "/") }

// unescaped undoes what pagechoice did, which made it of a valid path.
func unescaped(path string) string {
	text, _ := url.PathUnescape(path)
	return text
}
