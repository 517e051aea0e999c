package siteimage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
)

// BenchmarkBuild assembles a site of 10,000 pages, 80 MB, with a cold cache, with one page changed and with nothing
// changed. Beside the time it reports the process's largest resident set so far, in MB.
func BenchmarkBuild(b *testing.B) {
	o := newOptions(b, b.TempDir())
	filetest.Write(b, filepath.Join(o.Site, "index.html"), text("home", 8_000))
	filetest.Write(b, filepath.Join(o.Site, "articles/index.html"), text("list", 100_000))
	for i := range 10_000 {
		filetest.Write(b, filepath.Join(o.Site, fmt.Sprintf("articles/page-%d/index.html", i)), text(fmt.Sprint("page ", i), 8_000))
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			o.CacheDir = b.TempDir()
			b.StartTimer()
			mustBuild(b, o)
		}
		reportPeak(b)
	})
	mustBuild(b, o)
	b.Run("one page changed", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			filetest.Write(b, filepath.Join(o.Site, "articles/page-7/index.html"), text(fmt.Sprint(b.N, " changed ", i), 8_000))
			b.StartTimer()
			mustBuild(b, o)
		}
		reportPeak(b)
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			mustBuild(b, o)
		}
		reportPeak(b)
	})
}

func reportPeak(b *testing.B) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			b.ReportMetric(kilobytes/1000, "peak-MB")
		}
	}
}
