package timeline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// measure asks the page itself how wide it is and what stands out of it. A window of chromium is never narrower than 500
// pixels, so the page is looked at in a frame, which tells its parent.
const measure = `<script>
addEventListener("load", () => {
  const root = document.scrollingElement;
  const wide = [...document.querySelectorAll("body *")].filter(e => {
    const box = e.getBoundingClientRect();
    return !e.closest(".sheet, .hidden, style, script") && box.width > 0 && (box.right > root.clientWidth + 0.5 || box.left < -0.5);
  }).map(e => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40));
  parent.postMessage([innerWidth, root.clientWidth, root.scrollWidth, document.querySelectorAll(".layer").length, wide.join("; ")].join("|"), "*");
});
</script></body>`

const frame = `<!doctype html><body style="margin:0"><iframe src="page.html" style="border:0;width:%dpx;height:%dpx"></iframe>
<script>addEventListener("message", m => { document.documentElement.dataset.measured = m.data; });</script></body>`

var measured = regexp.MustCompile(`data-measured="(\d+)\|(\d+)\|(\d+)\|(\d+)\|([^"]*)"`)

func TestThePageFitsAPhoneAndADesk(t *testing.T) {
	chromium := findChromium(t)
	for _, sample := range samples {
		made := build(t, sample.name)
		html, err := made.HTML()
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range [][2]int{{390, 844}, {1280, 800}} {
			t.Run(fmt.Sprintf("%s at %d", sample.name, size[0]), func(t *testing.T) {
				shown := look(t, chromium, string(html), size)
				if shown.scrollWidth > shown.clientWidth || shown.outside != "" {
					t.Errorf("the page is %d wide in a window of %d; outside of it: %s", shown.scrollWidth, shown.clientWidth, shown.outside)
				}
				if shown.layers != len(made.Layers) {
					t.Errorf("%d layers are shown, there are %d", shown.layers, len(made.Layers))
				}
			})
		}
	}
}

func TestAPageThatIsTooWideIsNoticed(t *testing.T) {
	chromium := findChromium(t)
	page := `<!doctype html><meta name="viewport" content="width=device-width"><body><div style="width:600px">x</div></body>`
	if shown := look(t, chromium, page, [2]int{390, 844}); shown.scrollWidth <= shown.clientWidth || shown.outside == "" {
		t.Errorf("measured %+v", shown)
	}
}

// shown is how a page looks in a window; lengths in CSS pixels.
type shown struct {
	clientWidth, scrollWidth, layers int
	outside                          string // elements that stand out of the window
}

func look(t *testing.T, chromium, page string, size [2]int) shown {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"page.html": strings.Replace(page, "</body>", measure, 1), "frame.html": fmt.Sprintf(frame, size[0], size[1]),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := browse(t, chromium, folder, "--dump-dom", "file://"+filepath.Join(folder, "frame.html"))
	match := measured.FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("the page did not measure itself:\n%.2000s", out)
	}
	numbers := make([]int, 4)
	for i := range numbers {
		number, err := strconv.Atoi(match[i+1])
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = number
	}
	if numbers[0] != size[0] {
		t.Fatalf("the window is %d wide, not %d", numbers[0], size[0])
	}
	return shown{numbers[1], numbers[2], numbers[3], match[5]}
}

func findChromium(t *testing.T) string {
	t.Helper()
	return needs.Command(t, "chromium", "chromium", "chromium-browser", "google-chrome")
}

func browse(t *testing.T, chromium, folder string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, chromium, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--user-data-dir=" + filepath.Join(folder, "profile"), "--window-size=1600,1200", "--virtual-time-budget=2000",
	}, arguments...)...)
	command.WaitDelay = 5 * time.Second
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, complaints.String())
	}
	return string(out)
}
