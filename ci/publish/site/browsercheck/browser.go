package browsercheck

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// Programs are the names that Chromium has, on the PATH or as a path.
var Programs = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell", "chrome-headless-shell",
	"/headless-shell/headless-shell",
}

// findProgram looks for a named browser, or for any.
func findProgram(name string) (string, error) {
	names := Programs
	if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if file, err := exec.LookPath(name); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("no browser: none of %s is installed; install chromium, or name the program", strings.Join(names, ", "))
}

// flags beside chromedp's own. Nothing but the pages is to ask the network, no proxy of the machine's is to come between
// them and the site, and a container with root, a small /dev/shm and no display is to do. Frames of other hosts stay in the
// page's process: in one of their own, their requests would be the business of another target. Windows that nobody clicked
// for stay closed, as they do for visitors; chromedp would open them.
var flags = map[string]any{
	"headless":                            "new",
	"no-sandbox":                          true,
	"disable-gpu":                         true,
	"disable-popup-blocking":              false,
	"disable-quic":                        true,
	"disable-component-update":            true,
	"disable-domain-reliability":          true,
	"disable-crash-reporter":              true,
	"no-pings":                            true,
	"no-proxy-server":                     true,
	"disable-features":                    "Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,HttpsUpgrades,IsolateOrigins,SitePerProcess",
	"disable-site-isolation-trials":       true,
	"force-device-scale-factor":           "1",
	"disable-search-engine-choice-screen": true,
}

// chromium is a running browser.
type chromium struct {
	ctx   context.Context
	close func()
}

// startChromium runs a browser with a profile and a home of its own, which close removes. It dies with this process.
func startChromium(ctx context.Context, program string, f *front, offline bool) (*chromium, error) {
	home, err := os.MkdirTemp("", "castle-browser-")
	if err != nil {
		return nil, err
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	options = append(options, chromedp.ExecPath(program), chromedp.Flag("host-resolver-rules", f.rules(offline)),
		chromedp.NoInheritEnv, chromedp.Env(environment(home)...))
	if f.key != "" {
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", f.key))
	}
	allocated, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	running, stopBrowser := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}), chromedp.WithLogf(func(string, ...any) {}))
	c := &chromium{ctx: running, close: func() {
		stopBrowser()
		stopAllocator()
		_ = os.RemoveAll(home)
	}}
	if err := chromedp.Do(running); err != nil {
		c.close()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return c, nil
}

// environment is all that the browser gets of this process's: none of its secrets, and no proxy.
func environment(home string) []string {
	variables := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "LANG", "TMPDIR", "FONTCONFIG_PATH", "FONTCONFIG_FILE"} {
		if value, set := os.LookupEnv(name); set {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// version is as the browser names itself: Chrome/156.0.8078.79.
func (c *chromium) version() (string, error) {
	version, err := chromedp.CallBrowser(c.ctx, browser.GetVersion, cdp.Empty{})
	return strings.TrimPrefix(version.Product, "Headless"), err
}
