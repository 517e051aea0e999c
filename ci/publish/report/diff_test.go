package report

import (
	"strings"
	"testing"
)

func TestOfALongLineTheReportShowsWhatChanged(t *testing.T) {
	rest := strings.Repeat(`{"ü": 1}, `, 100_000)
	line := func(tag string) string { return rest + `"image": "ghcr.io/me/blog:` + tag + `"` + rest }
	r := Result{}
	r.GitOps.Path, r.GitOps.Line, r.GitOps.Old, r.GitOps.New = "list.json", 1, line("blog-1"), line("blog-22")
	got := r.diff()
	if len(got) > 1000 || !strings.Contains(got, "\n-…") || !strings.Contains(got, `"image": "ghcr.io/me/blog:blog-1"{"ü"`) ||
		!strings.Contains(got, `"image": "ghcr.io/me/blog:blog-22"{"ü"`) || !strings.HasSuffix(got, "…\n") {
		t.Errorf("%d bytes: %.1000s", len(got), got)
	}
	if was, is := shortened(rest+"a", rest+"ab"); !strings.HasSuffix(was, "}, a") || !strings.HasSuffix(is, "}, ab") {
		t.Errorf("%q, %q", was, is)
	}
}
