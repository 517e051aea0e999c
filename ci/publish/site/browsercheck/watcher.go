package browsercheck

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// problem is one thing that went wrong on one page.
type problem struct {
	rule  string
	cause string // the same for all pages that have it
	where string // file and line, or the whole address
}

// sight is what was seen of one page at one width.
type sight struct {
	problems []problem
	foreign  map[string]*Foreign // by host
	picture  []byte              // PNG
}

// request is one that a page made. Its redirects are the same request.
type request struct {
	id      network.RequestID
	address *url.URL
	loader  cdp.LoaderID // of the document that asks
	asked   time.Time
	open    bool // not answered yet
	status  int
	failure string // net::ERR_…
	blocked network.BlockedReason
}

// watcher listens to a tab's events.
type watcher struct {
	site    *url.URL
	dialogs chan struct{} // one is open
	changed chan struct{} // the network, or the document

	mu       sync.Mutex
	loaded   bool // the current document is
	crashed  bool
	requests map[network.RequestID]*request
	order    []*request
	problems []problem
}

func newWatcher(site *url.URL) *watcher {
	return &watcher{
		site: site, dialogs: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		requests: map[network.RequestID]*request{},
	}
}

func poke(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default: // it is poked already
	}
}

// event is called for each one in their order, and must not wait for anything.
func (w *watcher) event(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		poke(w.dialogs)
	case *inspector.EventTargetCrashed:
		w.crashed = true
		poke(w.changed)
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			w.loaded = false
			w.leave(e.Frame.LoaderID)
			poke(w.changed)
		}
	case *page.EventLoadEventFired:
		w.loaded = true
		poke(w.changed)
	case *audits.EventIssueAdded:
		if details := e.Issue.Details.ContentSecurityPolicyIssueDetails; details != nil && !details.IsReportOnly {
			w.problems = append(w.problems, w.violation(details))
		}
	case *runtime.EventExceptionThrown:
		details := e.ExceptionDetails
		w.problems = append(w.problems, problem{ruleException, exceptionText(details),
			w.place(firstURL(details.URL, details.StackTrace), details.LineNumber)})
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			at, line := top(e.StackTrace)
			w.problems = append(w.problems, problem{ruleConsole, consoleText(e.Args), w.place(at, line)})
		}
	case *log.EventEntryAdded:
		w.entry(e.Entry)
	default:
		w.network(event)
	}
}

// leave forgets what the documents before this one wait for: nothing more may be heard of it.
func (w *watcher) leave(current cdp.LoaderID) {
	for _, request := range w.order {
		if request.loader != current {
			request.open = false
		}
	}
}

// openerIgnored begins what the browser says of a site that is built for an address without TLS. Nothing breaks by it.
const openerIgnored = "The Cross-Origin-Opener-Policy header has been ignored"

// entry is what the browser itself writes to the console. What it says of the network is known from the requests.
func (w *watcher) entry(entry *log.Entry) {
	if entry.Level == log.EntryLevelError && entry.Source != log.EntrySourceNetwork && !strings.HasPrefix(entry.Text, openerIgnored) {
		w.problems = append(w.problems, problem{ruleConsole, firstLine(entry.Text), w.place(entry.URL, entry.LineNumber)})
	}
}

// network keeps the requests. Those that are data in a URL ask nobody.
func (w *watcher) network(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		address, err := url.Parse(e.Request.URL)
		// The browser asks for the icon by itself; no page has to name one.
		if err != nil || address.Host == "" || address.Path == "/favicon.ico" {
			return
		}
		known := w.requests[e.RequestID]
		if known == nil {
			known = &request{id: e.RequestID}
			w.requests[e.RequestID] = known
			w.order = append(w.order, known)
		}
		known.address, known.loader, known.asked, known.open = address, e.LoaderID, time.Now(), true
	case *network.EventResponseReceived:
		if known := w.requests[e.RequestID]; known != nil {
			known.status = int(e.Response.Status)
			// A stream comes as it is used, and never ends.
			if e.Type == network.ResourceTypeMedia || e.Type == network.ResourceTypeEventSource {
				known.open = false
			}
		}
	case *network.EventLoadingFinished:
		if known := w.requests[e.RequestID]; known != nil {
			known.open = false
		}
	case *network.EventLoadingFailed:
		if known := w.requests[e.RequestID]; known != nil {
			known.open, known.blocked = false, e.BlockedReason
			if !e.Canceled || e.BlockedReason != "" {
				known.failure = e.ErrorText
			}
		}
	default:
		return
	}
	poke(w.changed)
}

// settle waits until the document is loaded and nothing was asked of the network for a while.
func (w *watcher) settle(ctx context.Context) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.changed:
			timer.Reset(quiet)
		case <-timer.C: // set again by what happens next
			if !w.busy() {
				return nil
			}
		}
		if err := w.crash(nil); err != nil {
			return err
		}
	}
}

func (w *watcher) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.order {
		if request.open {
			return true
		}
	}
	return !w.loaded
}

// crash is errCrashed if the page has, else the error that it is given.
func (w *watcher) crash(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crashed {
		return errCrashed
	}
	return err
}

func (w *watcher) add(found problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, found)
}

// conclude judges the requests: first is the page's own, and want the status that it is to have.
func (w *watcher) conclude(first network.RequestID, want int) *sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := &sight{problems: w.problems, foreign: map[string]*Foreign{}}
	for _, request := range w.order {
		switch {
		case request.id == first:
			if request.status != want {
				answer := cmp.Or(request.outcome(), fmt.Sprint(request.status))
				seen.problems = append(seen.problems, problem{ruleStatus, fmt.Sprintf("the page answers %s, want %d", answer, want), ""})
			}
		case request.blocked == network.BlockedReasonCsp: // an issue says so
		case request.address.Host == w.site.Host:
			if outcome := request.outcome(); outcome != "" {
				seen.problems = append(seen.problems, problem{ruleMissing, fmt.Sprintf("%s: %s", w.place(request.address.String(), -1), outcome), ""})
			}
		default:
			host := seen.foreign[request.address.Host]
			if host == nil {
				host = &Foreign{Host: request.address.Host}
				seen.foreign[request.address.Host] = host
			}
			host.Requests++
			if request.outcome() != "" {
				host.Failed++
			}
		}
	}
	if hasRule(seen.problems, ruleViolation) {
		seen.problems = slices.DeleteFunc(seen.problems, repeatsViolation)
	}
	return seen
}

// repeatsViolation is true of what the console says of a violation: a message, and the exception of a refused eval.
func repeatsViolation(found problem) bool {
	return (found.rule == ruleConsole || found.rule == ruleException) &&
		(strings.Contains(found.cause, "Content Security Policy") || strings.Contains(found.cause, "was not explicitly set, so 'default-src'"))
}

func hasRule(problems []problem, rule string) bool {
	return slices.ContainsFunc(problems, func(found problem) bool { return found.rule == rule })
}

// patience is after how long a request counts as not answered. A younger one is that of a page that never stops asking.
const patience = 2 * time.Second

// outcome is how a request failed; "" is one that did not.
func (r *request) outcome() string {
	switch {
	case r.status >= http.StatusBadRequest:
		return fmt.Sprint(r.status)
	case r.blocked != "":
		return fmt.Sprintf("blocked (%s)", r.blocked)
	case r.failure != "":
		return r.failure
	case r.open && time.Since(r.asked) > patience:
		return "no answer"
	}
	return ""
}
