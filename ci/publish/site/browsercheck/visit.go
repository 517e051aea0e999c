package browsercheck

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"tazlab.net/castle/ci/publish/site/browsercheck/pagechoice"
)

// quiet is how long nothing may be asked of the network before a page counts as settled; Chromium's own networkIdle takes
// the same.
const quiet = 500 * time.Millisecond

// grace is what opening and closing a tab may take beside the page's own deadline.
const grace = 20 * time.Second

// maxScrolls bounds a page that grows whenever it is scrolled.
const maxScrolls = 3

// tallest is how much of a page a screenshot shows, in pixels.
const tallest = 12000

//go:embed scroll.js
var scroll string

// errCrashed is the end of one page's process, not of the browser.
var errCrashed = errors.New("the page crashed")

// view is one page at one width.
type view struct {
	page  pagechoice.Page
	width int
}

// visit opens a page in a tab of its own, with storage of its own, and tells what it saw. Only what is no fault of the page is
// an error.
func (c *chromium) visit(ctx context.Context, v view, site *url.URL, deadline time.Duration, picture bool) (*sight, error) {
	w := newWatcher(site)
	tab, closeTab := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(w.event))
	defer closeTab()
	// The tab lives as long as the context it was opened with, so a deadline must not end that one.
	stop := context.AfterFunc(ctx, closeTab)
	defer stop()
	opening := time.AfterFunc(deadline+grace, closeTab)
	defer opening.Stop()
	if err := c.prepare(tab, v.width); err != nil {
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	go dismissDialogs(tab, w.dialogs)

	timed, cancel := context.WithTimeout(tab, deadline)
	defer cancel()
	address := *site
	address.Path = trimSlash(site.Path) + unescaped(v.page.Path)
	first, err := open(timed, address.String(), w)
	switch {
	case errors.Is(err, errCrashed):
		w.add(problem{rule: ruleCrash, cause: "the page ends its process"})
	case timed.Err() != nil && tab.Err() == nil:
		w.add(problem{rule: ruleRestless, cause: fmt.Sprintf("still loading after %s; judged as it was then", deadline)})
	case err != nil:
		return nil, err
	}
	seen := w.conclude(first, v.page.Status)
	if picture && !errors.Is(err, errCrashed) {
		if seen.picture, err = photograph(tab); err != nil {
			return nil, fmt.Errorf("take a screenshot: %w", err)
		}
	}
	return seen, nil
}

// prepare makes a tab that is as wide as wanted, saves no file and asks no service worker.
func (c *chromium) prepare(tab context.Context, width int) error {
	height, phone := 800, width < 768
	if phone {
		height = 844
	}
	size := []chromedp.EmulateViewportOption{}
	if phone {
		size = append(size, chromedp.EmulateMobile)
	}
	if err := chromedp.Do(tab, chromedp.EmulateViewport(int64(width), int64(height), size...)); err != nil {
		return err
	}
	if _, err := chromedp.Call(tab, audits.Enable, cdp.Empty{}); err != nil {
		return err
	}
	if _, err := chromedp.Call(tab, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}); err != nil {
		return err
	}
	_, err := chromedp.CallBrowser(tab, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: chromedp.FromContext(tab).BrowserContextID,
	})
	return err
}

// dismissDialogs answers what would halt the page: alert, confirm, prompt and the question before leaving.
func dismissDialogs(tab context.Context, dialogs <-chan struct{}) {
	for {
		select {
		case <-tab.Done():
			return
		case <-dialogs:
			// A dialog that is gone meanwhile is as good.
			_, _ = chromedp.Call(tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}
	}
}

// open loads a page until it settles, scrolls it to the end, and returns what identifies its first request.
func open(ctx context.Context, address string, w *watcher) (network.RequestID, error) {
	navigated, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
	first := network.RequestID(navigated.LoaderID)
	if err != nil {
		return first, w.crash(err)
	}
	far := -1.0
	for range maxScrolls {
		if err := w.settle(ctx); err != nil {
			return first, err
		}
		now, err := chromedp.Run(ctx, chromedp.Evaluate[float64](scroll, chromedp.EvalAwaitPromise))
		if exception := (*chromedp.ExceptionError)(nil); errors.As(err, &exception) {
			return first, nil // no document of ours, such as the browser's own page for an error
		}
		if err != nil {
			return first, w.crash(err)
		}
		if now == far {
			return first, nil
		}
		far = now
	}
	return first, w.settle(ctx)
}

func photograph(tab context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(tab, grace)
	defer cancel()
	metrics, err := chromedp.Call(ctx, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	size := metrics.CSSContentSize
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: new(true),
		Clip:                  &page.Viewport{Width: size.Width, Height: min(size.Height, tallest), Scale: 1},
	})
	return shot.Data, err
}
