package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/base/rendering/renderingtest"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/warning"
)

const (
	oldDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	newDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	oldSHA    = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
	newSHA    = "5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80"
	commitSHA = "c0ffee00112233445566778899aabbccddeeff00"
)

// inAllFormats are reports that have between them every field of JSON: its names are what programs read.
var inAllFormats = map[string]bool{
	"another-build-of-the-same-inputs": true,
	"headers-fitted":                   true,
	"hugo":                             true,
	"nothing-to-do-and-available":      true,
	"published-and-unseen":             true,
	"rebuild":                          true,
	"repeated-warnings":                true,
	"signed":                           true,
}

// sample is the report of a publish that changed everything.
func sample() Result {
	return Result{
		Changed: true,
		Source: Source{
			Commit: newSHA, Subject: "Say `hugo | gzip` in the title", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Repository: "https://example.org/blog.git",
		},
		Image: Image{Repository: "tazzo/tazlab.net", Tag: "blog-5d6e7f8", Digest: newDigest, UploadedBytes: 123_456},
		GitOps: GitOps{
			Repository: "https://example.org/tazlab-k8s.git", Branch: "main", Path: "apps/base/hugo-blog/hugo-blog.yaml", Commit: commitSHA,
			Changed: true, Line: 18, Attempts: 1,
			Old: `          image: "tazzo/tazlab.net:blog-1a2b3c4"`, New: `          image: "tazzo/tazlab.net:blog-5d6e7f8"`,
		},
		Steps:   []Step{{"build the site with Hugo", 1.234}, {"push the image", 12.5}, {"update the manifest", 0.04}},
		Seconds: 13.774,
	}
}

func unchanged(g GitOps) GitOps {
	g.Changed, g.Line, g.Old, g.New = false, 0, "", ""
	return g
}

// rolledBack turns the sample into a rollback's report.
func rolledBack(r *Result) {
	r.Rollback, r.Source = true, Source{Commit: oldSHA, Repository: r.Source.Repository}
	r.Image = Image{Repository: r.Image.Repository, Tag: "blog-1a2b3c4", Digest: oldDigest, AlreadyThere: true}
	r.GitOps.Old, r.GitOps.New = r.GitOps.New, r.GitOps.Old
}

func TestAReportReadsAsItsGoldenFile(t *testing.T) {
	for name, change := range map[string]func(*Result){
		"published": func(*Result) {},
		"signed": func(r *Result) {
			r.Image.Signature = &Signature{Key: oldDigest, SBOM: &SBOM{Parts: 153}}
		},
		"signed-before": func(r *Result) {
			r.Image.AlreadyThere, r.Image.UploadedBytes, r.Changed, r.GitOps = true, 0, false, unchanged(r.GitOps)
			r.Image.Signature = &Signature{Key: oldDigest, AlreadyThere: true, SBOM: &SBOM{AlreadyThere: true}}
		},
		"others-were-faster": func(r *Result) {
			r.GitOps.Attempts = 3
			r.GitOps.Branch = "publish/blog-5d6e7f8"
			r.Image.UploadedBytes = 54_321_000
		},
		"with-warnings": func(r *Result) {
			r.Warnings = []string{`tags: "a|b" (a.md) and "A|B" (b.md) are one term, and its page is titled after "A|B"; write them alike`, "another"}
		},
		"repeated-warnings": func(r *Result) {
			warnings := []warning.Warning{{Text: "languages: de and en have no weight"}}
			for _, term := range []string{"AI", "Go", "Rust"} {
				warnings = append(warnings, warning.Warning{Text: "whole sentence on " + term, Kind: "terms of tags have several spellings", Example: term})
			}
			r.Warn(warnings)
			r.Headers = &Headers{Mode: "fitted", ContentSecurityPolicy: "default-src 'self'"}
			for _, host := range []string{"a", "b", "c"} {
				r.Headers.Weak = append(r.Headers.Weak, "img-src https: because of a script of "+host+".example, in "+host+".html")
			}
		},
		"nothing-to-do": func(r *Result) {
			r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = false, true, 0, unchanged(r.GitOps)
		},
		"another-build-of-the-same-inputs": func(r *Result) {
			r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = false, true, 0, unchanged(r.GitOps)
			r.Image.BuildDigest = oldDigest
		},
		"image-only": func(r *Result) { r.GitOps, r.Image.UploadedBytes = unchanged(r.GitOps), 999 },
		"dry-run": func(r *Result) {
			r.DryRun, r.Image.UploadedBytes, r.GitOps.Commit = true, 0, ""
		},
		"dry-run-nothing-to-do": func(r *Result) {
			r.DryRun, r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = true, false, true, 0, unchanged(r.GitOps)
		},
		"rebuild": func(r *Result) {
			r.Image.Tag = "blog-5d6e7f8-r2"
			r.Image.Rebuild = &Rebuild{Number: 2, Was: "blog-5d6e7f8", Differences: []string{"the base image was nginx:1.30.4 and is nginx:1.30.5", "Hugo's image was a and is b"}}
			r.GitOps.New = `          image: "tazzo/tazlab.net:blog-5d6e7f8-r2"`
		},
		"rebuild-again": func(r *Result) {
			r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = false, true, 0, unchanged(r.GitOps)
			r.Image.Tag, r.Image.Rebuild = "blog-5d6e7f8-r2", &Rebuild{Number: 2}
		},
		"hugo": func(r *Result) {
			r.Hugo = hugoversion.Choice{Version: "0.148.1", From: "module.hugoVersion.max of blog/hugo.toml"}
		},
		"rolled-back": rolledBack,
		"headers-fitted": func(r *Result) {
			r.Headers = &Headers{
				Mode: "fitted",
				ContentSecurityPolicy: "default-src 'self'; script-src 'self' " + strings.Repeat("'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' ", 3) +
					"https://comments.example; img-src 'self' data: https:; frame-ancestors 'self'",
				FrameOptions: "SAMEORIGIN", OpenerPolicy: "same-origin-allow-popups", PermissionsPolicy: "camera=(), usb=()",
				Weak: []string{"img-src https: because of 120 different hosts of pictures, too many to list in a header, in 2 files, such as a|b/index.html"},
			}
		},
		"headers-strict": func(r *Result) { r.Headers = &Headers{Mode: "strict", ContentSecurityPolicy: "default-src 'self'"} },
		"rollback-nothing-to-do": func(r *Result) {
			r.Rollback, r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = true, false, true, 0, unchanged(r.GitOps)
		},
		"digest-on-a-line-of-its-own": func(r *Result) {
			r.GitOps.Old = "    newTag: blog-1a2b3c4"
			r.GitOps.New = "    newTag: blog-5d6e7f8\n    digest: " + newDigest
		},
	} {
		result := sample()
		change(&result)
		if inAllFormats[name] {
			renderingtest.MustRead(t, name, result)
		} else {
			renderingtest.MustReadText(t, name, result)
		}
	}
}

func TestAJSONReportIsReadBackAsItWas(t *testing.T) {
	text, err := rendering.As("json", sample())
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	if back.Text() != sample().Text() {
		t.Errorf("got\n%s", back.Text())
	}
}

func TestAStepIsReadFromText(t *testing.T) {
	t.Parallel()
	step, err := ParseStep("build the site with Hugo=1.5s")
	if err != nil || step != (Step{"build the site with Hugo", 1.5}) {
		t.Errorf("%+v, %v", step, err)
	}
	for _, text := range []string{"", "build", "build=", "build=fast", "=1s"} {
		if _, err := ParseStep(text); err == nil || !strings.Contains(err.Error(), "want name=duration") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
