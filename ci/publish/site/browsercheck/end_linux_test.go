package browsercheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/publish/site/sitetest"
	"tazlab.net/castle/ci/test/needs"
)

// processes are those whose command line has all of these texts.
func processes(t *testing.T, texts ...string) (ids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil || id == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		has := err == nil
		for _, text := range texts {
			has = has && bytes.Contains(line, []byte(text))
		}
		if has {
			ids = append(ids, id)
		}
	}
	return ids
}

// ends waits until a process has ended, and says whether it has within that time. It need be no child of ours.
func ends(t *testing.T, id int, within time.Duration) bool {
	t.Helper()
	process, err := unix.PidfdOpen(id, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	for until := time.Now().Add(within); ; {
		ended, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(max(0, time.Until(until)).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && ended == 1
		}
	}
}

// shortFolder is a temporary folder in whose name there is room for that of Chromium's socket: 108 letters in all.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// killing checks a site of which opening /victim/ ends processes of the browser, as often as told.
func killing(t *testing.T, times int, texts ...string) Report {
	t.Helper()
	folder := sitetest.Unpack(t, "-- index.html --\n"+head+"home\n-- victim/index.html --\n"+head+"<canvas></canvas>\n-- other/index.html --\n"+head+"<form></form>\n")
	temporary := shortFolder(t)
	t.Setenv("TMPDIR", temporary)
	files := http.FileServer(http.Dir(folder))
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/victim/" && times > 0 {
			times--
			for _, id := range processes(t, append(texts, temporary)...) {
				_ = syscall.Kill(id, syscall.SIGKILL)
			}
			<-r.Context().Done()
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	report, err := Check(t.Context(), Options{URL: server.URL, Dir: folder, Offline: true, Widths: []int{1280},
		Program: needs.Command(t, "chromium", Programs...)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestABrowserThatEndsIsStartedAgain(t *testing.T) {
	expect(t, killing(t, 1, "--remote-debugging-pipe"))
}

func TestAPageThatEndsTheBrowserIsFoundAndTheOthersAreOpened(t *testing.T) {
	report := killing(t, 1000, "--remote-debugging-pipe")
	if found := summary(report); len(found) != 1 || !strings.HasPrefix(found[0], "crash: ") || !strings.HasSuffix(found[0], ": /victim/") {
		t.Errorf("found %v", found)
	}
}

// childVariable makes this test program the one that is killed: the site's address and folder.
const childVariable = "BROWSERCHECK_TEST_CHILD"

func TestMain(m *testing.M) {
	if address, folder, is := strings.Cut(os.Getenv(childVariable), " "); is {
		_, err := Check(context.Background(), Options{URL: address, Dir: folder, Offline: true, Widths: []int{1280}, PageDeadline: time.Minute})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestNoBrowserOutlivesTheCheck(t *testing.T) {
	needs.Command(t, "chromium", Programs...)
	folder := sitetest.Unpack(t, "-- index.html --\n"+head+"<script src=/slow.js></script>")
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.js" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		http.FileServer(http.Dir(folder)).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "terminated": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			temporary := shortFolder(t)
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), childVariable+"="+server.URL+" "+folder, "TMPDIR="+temporary)
			var said bytes.Buffer
			child.Stdout, child.Stderr = &said, &said
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- child.Wait() }()
			select {
			case <-asked:
			case err := <-ended:
				t.Fatalf("the check has ended before the browser opened the page: %v\n%s", err, said.String())
			case <-time.After(time.Minute):
				left := processes(t, temporary)
				_ = child.Process.Kill()
				t.Fatalf("the browser did not open the page: %v; it runs as %v\n%s", <-ended, left, said.String())
			}
			if len(processes(t, temporary)) == 0 {
				t.Fatal("no process of the browser has the folder in its command line: the test looks for the wrong thing")
			}
			_ = child.Process.Signal(signal)
			<-ended
			deadline := time.Now().Add(20 * time.Second)
			for left := processes(t, temporary); len(left) > 0; left = processes(t, temporary) {
				if !ends(t, left[0], time.Until(deadline)) {
					t.Fatalf("still there: %v", left)
				}
			}
		})
	}
}
