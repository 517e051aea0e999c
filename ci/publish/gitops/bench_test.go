package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkUpdateInARepositoryOf5000Manifests compares an update with what a person would type: clone, sed, commit, push,
// the clone once whole and once with --depth=1. One operation is one of each, on the same repository, in turns; the metrics
// are the mean seconds of each and the ratios.
func BenchmarkUpdateInARepositoryOf5000Manifests(b *testing.B) {
	files := map[string]string{manifestPath: deployment}
	for i := range 4999 {
		name := fmt.Sprintf("apps/team-%02d/app-%04d/deployment.yaml", i%50, i)
		files[name] = strings.Repeat(fmt.Sprintf("# manifest %d\n", i), 20) + strings.ReplaceAll(deployment, "hugo-blog", fmt.Sprintf("app-%d", i))
	}
	r := newRemote(b, files)
	r.git(b, "gc", "--quiet")
	work := b.TempDir()

	var castle, shallow, full, beyond time.Duration
	n := 0
	for b.Loop() {
		n++
		start := time.Now()
		result := mustUpdate(b, r.repository, publish(short(2*n)))
		castle += time.Since(start)
		beyond += result.Timings.Commit

		start = time.Now()
		byHand(b, r, filepath.Join(work, "full"), short(3*n))
		full += time.Since(start)

		start = time.Now()
		byHand(b, r, filepath.Join(work, "shallow"), short(4*n), "--depth=1")
		shallow += time.Since(start)
	}
	b.ReportMetric(castle.Seconds()/float64(n), "update-s")
	b.ReportMetric(full.Seconds()/float64(n), "plain-s")
	b.ReportMetric(shallow.Seconds()/float64(n), "plain-shallow-s")
	b.ReportMetric(castle.Seconds()/full.Seconds(), "update/plain")
	b.ReportMetric(castle.Seconds()/shallow.Seconds(), "update/plain-shallow")
	b.ReportMetric(beyond.Seconds()/float64(n), "edit+commit-s")
	b.ReportMetric(0, "ns/op")
}

// byHand is the plain sequence, with the token in the URL, as one should not.
func byHand(b *testing.B, r *remote, dir, commit string, options ...string) {
	b.Helper()
	address := strings.Replace(r.repository.URL, "http://", "http://me:"+strings.NewReplacer("/", "%2F", "+", "%2B", "&", "%26").Replace(canary)+"@", 1)
	for _, command := range [][]string{
		append(append([]string{"git", "clone", "-q"}, options...), address, dir),
		{"sed", "-i", "s|tazzo/tazlab.net:blog-[0-9a-f]*\"|tazzo/tazlab.net:blog-" + commit + "\"|", filepath.Join(dir, manifestPath)},
		{"git", "-C", dir, "-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-qam", "Publish " + commit},
		{"git", "-C", dir, "push", "-q"},
	} {
		run := exec.CommandContext(b.Context(), command[0], command[1:]...)
		if out, err := run.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", strings.Join(command[:2], " "), err, out)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
}
