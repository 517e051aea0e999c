package publish

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/manifest"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

const (
	oldDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	newDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	oldSHA    = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
	newSHA    = "5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80"
	commitSHA = "c0ffee00112233445566778899aabbccddeeff00"
)

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
			Repository: "https://example.org/tazlab-k8s.git", Branch: "main", Path: manifestPath, Commit: commitSHA,
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
		"others-were-faster": func(r *Result) {
			r.GitOps.Attempts = 3
			r.GitOps.Branch = "publish/blog-5d6e7f8"
			r.Image.UploadedBytes = 54_321_000
		},
		"with-warnings": func(r *Result) {
			r.Warnings = []string{`tags: "a|b" (a.md) and "A|B" (b.md) are one term, and its page is titled after "A|B"; write them alike`, "another"}
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
		mustRead(t, name, result)
	}
}

func TestAHistoryReadsAsItsGoldenFile(t *testing.T) {
	reference := func(tag, digest string) manifest.Reference {
		return manifest.Reference{Repository: "tazzo/tazlab.net", Tag: tag, Digest: digest}
	}
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	mustRead(t, "history", History{
		{
			Commit: commitSHA, Time: at(12), Author: "castle", Action: gitops.Rollback, SourceCommit: oldSHA, Digest: oldDigest,
			SourceRepository: "https://example.org/blog.git", Old: reference("blog-5d6e7f8", ""), New: reference("blog-1a2b3c4", ""),
		},
		{
			Commit: newSHA, Time: at(11), Author: "castle", Action: gitops.Publish, SourceCommit: newSHA, Digest: newDigest,
			SourceRepository: "https://example.org/blog.git", Old: reference("", newDigest), New: reference("blog-5d6e7f8", ""),
		},
		{Commit: oldSHA, Time: at(10), Author: "A | B `c`", Old: reference("blog-by-hand", ""), New: reference("", newDigest)},
		{Commit: commitSHA, Time: at(9), Author: "Some Person", Old: manifest.Reference{}, New: reference("blog-by-hand", "")},
		{Commit: newSHA, Time: at(8), Author: "Some Person", Old: reference("blog-older", ""), New: manifest.Reference{}},
	})
	mustRead(t, "history-empty", History(nil))
}

// mustRead compares all formats of a result with the golden files of that name.
func mustRead(t *testing.T, name string, result rendering.Result) {
	t.Helper()
	for format, extension := range map[string]string{"text": ".txt", "json": ".json", "markdown": ".md"} {
		t.Run(name+" as "+format, func(t *testing.T) {
			got, err := rendering.As(format, result)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(got, "\n") {
				if strings.TrimRight(line, " \t") != line {
					t.Errorf("line %d ends in a space: %q", i+1, line)
				}
			}
			file := filepath.Join("testdata", name+extension)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; look at it, and run with -update if it shall be so. Got\n%s", file, got)
			}
		})
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

func TestTheHistoryOfARealRepositoryNamesWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	w.commitByHand(t, "Hurry", strings.ReplaceAll(w.manifest(t), ":blog-5d6e7f8", ":blog-by-hand"))
	if _, err := Rollback(t.Context(), w.rollbackTo("1a2b3c4")); err != nil {
		t.Fatal(err)
	}
	text, err := rendering.As("json", w.history(t))
	if err != nil {
		t.Fatal(err)
	}
	var records []record
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, r := range records {
		actions = append(actions, r.Action)
	}
	if got := strings.Join(actions, ", "); got != "rollback, by hand, publish, publish, by hand" {
		t.Errorf("actions %s", got)
	}
	if records[0].New != w.image()+":blog-1a2b3c4" || records[0].Digest != older.Image.Digest || records[1].Author != "Some Person" {
		t.Errorf("%+v", records[:2])
	}
}
