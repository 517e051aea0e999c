package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// What is told of a call that is over its time: its last steps, and of every process on the machine how long it has run.
const (
	overdueSteps = 60
	overdueEarly = 15 * time.Second // before the call is interrupted, while what it waits for still runs
)

// tellOverdue lists the processes of this machine shortly before a call's time is over, since they end with it. What it returns is
// called when the call has ended, and gives the list.
func tellOverdue(limit time.Duration) (processes func() string) {
	listed := make(chan string, 1)
	timer := time.AfterFunc(limit-overdueEarly, func() { listed <- runningProcesses() })
	return func() string {
		timer.Stop()
		select {
		case list := <-listed:
			return list
		default:
			return "none were listed"
		}
	}
}

// lastLines are the end of a text.
func lastLines(text []byte, count int) string {
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-count):], []byte("\n")))
}

// runningProcesses are a line each: id, parent, state, where it waits in the kernel, and command, without kernel threads.
func runningProcesses() string {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	slices.SortFunc(folders, func(a, b string) int { return pidOf(a) - pidOf(b) })
	var list strings.Builder
	for _, folder := range folders {
		command, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(command) == 0 {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(folder, "stat"))
		state, parent := "?", "?"
		if at := bytes.LastIndexByte(status, ')'); at > 0 {
			if fields := strings.Fields(string(status[at+1:])); len(fields) > 1 {
				state, parent = fields[0], fields[1]
			}
		}
		waits, _ := os.ReadFile(filepath.Join(folder, "wchan"))
		arguments := strings.ToValidUTF8(string(bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '})), "?")
		fmt.Fprintf(&list, "%d %s %s %s %.160s\n", pidOf(folder), parent, state, waits, arguments)
	}
	return list.String()
}

func pidOf(folder string) int {
	pid, _ := strconv.Atoi(filepath.Base(folder))
	return pid
}

func TestACallThatIsOverdueTellsWhatRan(t *testing.T) {
	needs.Most(t)
	if list := runningProcesses(); !strings.Contains(list, fmt.Sprintf("%d %d ", os.Getpid(), os.Getppid())) || !strings.Contains(list, ".test") {
		t.Errorf("this test is not among the processes:\n%s", list)
	}
	if got := lastLines([]byte("a\nb\nc\n"), 2); got != "b\nc" {
		t.Errorf("the last two lines are %q", got)
	}
}
