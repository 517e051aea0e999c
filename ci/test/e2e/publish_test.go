package e2e

import (
	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/registry/registrytest"

	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
	"tazlab.net/castle/ci/test/world"
)

// publishJSON publishes and reads the report.
func publishJSON(t *testing.T, w *world.World, source string, more ...string) report.Result {
	t.Helper()
	args := append([]string{"publish-blog", "--source=" + source, "--format=JSON"}, w.OnRegistry()...)
	out := mustCall(t, w.Environment(), append(append(args, w.OnGitOps()...), more...)...)
	var result report.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, out)
	}
	return result
}

// publishFails publishes, which must fail, and returns what was said.
func publishFails(t *testing.T, w *world.World, source string, more ...string) string {
	t.Helper()
	args := append([]string{"publish-blog", "--source=" + source}, w.OnRegistry()...)
	done := call(t, w.Environment(), append(append(args, w.OnGitOps()...), more...)...)
	if done.err == nil {
		t.Fatalf("the call succeeded:\n%s", done.stdout)
	}
	return done.stderr
}

func TestAPublishedPageIsServedFromThePublishedImage(t *testing.T) {
	needs.MainPath(t)
	w, source := world.New(t), newBlog(t)
	sha := world.Git(t, source, "rev-parse", "HEAD")

	result := publishJSON(t, w, source)
	if want := "blog-" + sha[:7]; result.Image.Tag != want || !result.Changed || result.Source.Commit != sha {
		t.Errorf("got tag %q, changed %t, commit %s; want %q, true, %s", result.Image.Tag, result.Changed, result.Source.Commit, want, sha)
	}
	if digest := w.DigestAt(t, result.Image.Tag); digest != result.Image.Digest {
		t.Errorf("the registry has %s, the report says %s", digest, result.Image.Digest)
	}
	want := strings.Replace(w.Manifest, "'"+w.Image()+":blog-0000000'", "'"+w.Image()+":"+result.Image.Tag+"'", 1)
	if got := w.ManifestOn(t, "main"); got != strings.TrimSpace(want) {
		t.Errorf("the manifest is\n%s\nwant\n%s", got, want)
	}
	message := world.Git(t, w.Repository(), "log", "-1", "--format=%B", "main")
	if !strings.Contains(message, sha) || !strings.Contains(message, result.Image.Digest) {
		t.Errorf("the commit names not both the source and the digest:\n%s", message)
	}

	base := startService(t, root(t), w.Environment(), append([]string{"serve-blog", "--tag=" + result.Image.Tag}, w.OnRegistry()...), 80)
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/":            {http.StatusOK, "<title>"},
		"/it/":         {http.StatusOK, `lang=it`},
		"/index.xml":   {http.StatusOK, "<rss"},
		"/nowhere/":    {http.StatusNotFound, "<title>"},
		"/healthz":     {http.StatusOK, ""},
		"/sitemap.xml": {http.StatusOK, "<sitemap"},
	} {
		response, body := get(t, base+path)
		if response.StatusCode != want.status || !strings.Contains(body, want.body) {
			t.Errorf("GET %s: %s, want %d with %q in:\n%.300s", path, response.Status, want.status, want.body, body)
		}
		if response.Header.Get("Content-Security-Policy") == "" && want.body != "" {
			t.Errorf("GET %s has no Content-Security-Policy", path)
		}
	}

	again := publishJSON(t, w, source)
	if again.Changed || !again.Image.AlreadyThere || again.Image.Digest != result.Image.Digest || again.Image.UploadedBytes != 0 {
		t.Errorf("published again: changed %t, already there %t, %d bytes sent, digest %s; want the same digest and nothing done",
			again.Changed, again.Image.AlreadyThere, again.Image.UploadedBytes, again.Image.Digest)
	}
	if commits := w.Commits(t, "main"); len(commits) != 2 {
		t.Errorf("published twice: %d commits, want the seed and one more: %q", len(commits), commits)
	}
}

func TestADirtyTreeIsRefusedWithItsFiles(t *testing.T) {
	needs.MainPath(t)
	w, source := world.New(t), newBlog(t)
	for _, name := range []string{"untracked.txt", "blog/content/_index.md"} {
		filetest.Write(t, filepath.Join(source, name), "changed")
	}
	tell.Fault(t, "an untracked file and a changed one")
	said := publishFails(t, w, source)
	for _, want := range []string{"untracked.txt", "blog/content/_index.md"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not named in:\n%s", want, said)
		}
	}
	untouched(t, w)
}

func TestADryRunSaysWhatWouldChangeAndChangesNothing(t *testing.T) {
	needs.Most(t)
	w, source := world.New(t), newBlog(t)
	result := publishJSON(t, w, source, "--dry-run")
	if !result.DryRun || !result.GitOps.Changed || !strings.Contains(result.GitOps.New, result.Image.Tag) {
		t.Errorf("got %+v, want a dry run that shows the new line", result)
	}
	untouched(t, w)
}

func TestATagWithOtherContentIsNeverOverwritten(t *testing.T) {
	needs.MainPath(t)
	w, source := world.New(t), newBlog(t)
	first := publishJSON(t, w, source)
	// The same commit on another port is another image.
	tell.Fault(t, "the same commit, published with another port")
	said := publishFails(t, w, source, "--port=8080")
	if !strings.Contains(said, first.Image.Digest) {
		t.Errorf("the digest that is there (%s) is not named in:\n%s", first.Image.Digest, said)
	}
	if !strings.Contains(said, "the port was 80 and is 8080") {
		t.Errorf("the input that differs is not named in:\n%s", said)
	}
	if digest := w.DigestAt(t, first.Image.Tag); digest != first.Image.Digest {
		t.Errorf("the tag was overwritten: %s", digest)
	}
	// Asked for, it gets a tag beside the other.
	again := publishJSON(t, w, source, "--port=8080", "--rebuild")
	if again.Image.Tag != first.Image.Tag+"-r2" || !strings.Contains(w.ManifestOn(t, "main"), again.Image.Tag) {
		t.Errorf("the tag is %s, the manifest\n%s", again.Image.Tag, w.ManifestOn(t, "main"))
	}
	if digest := w.DigestAt(t, first.Image.Tag); digest != first.Image.Digest {
		t.Errorf("the first tag was overwritten: %s", digest)
	}
	back := mustCall(t, w.Environment(), append(append([]string{"rollback-blog", "--source=" + source, "--to=" + strings.TrimPrefix(first.Image.Tag, "blog-") + "-r1"}, w.OnRegistry()...), w.OnGitOps()...)...)
	if !strings.Contains(back, first.Image.Tag) || strings.Contains(w.ManifestOn(t, "main"), again.Image.Tag) {
		t.Errorf("%s\n%s", back, w.ManifestOn(t, "main"))
	}
}

func TestARegistryInABadMoodLeavesTheManifestAlone(t *testing.T) {
	needs.Most(t)
	w, source := world.New(t), newBlog(t)
	w.Faults.Arm(registrytest.Fault{Mood: registrytest.Unauthorized, Times: 1000})
	publishFails(t, w, source)
	untouched(t, w)
}

func TestRollbackGoesToAnEarlierImageAndHistoryShowsIt(t *testing.T) {
	needs.MainPath(t)
	w, source := world.New(t), newBlog(t)
	first := publishJSON(t, w, source)
	page := filepath.Join(source, "blog/content/about.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, page, string(text)+"\nOne more sentence.\n")
	world.CommitAll(t, source, "Add a sentence")
	second := publishJSON(t, w, source)
	if second.Image.UploadedBytes >= first.Image.UploadedBytes/4 {
		t.Errorf("a changed sentence sent %d bytes, the whole image %d", second.Image.UploadedBytes, first.Image.UploadedBytes)
	}

	args := append([]string{"rollback-blog", "--to=" + first.Source.Commit[:7]}, w.OnRegistry()...)
	mustCall(t, w.Environment(), append(args, w.OnGitOps()...)...)
	if manifest := w.ManifestOn(t, "main"); !strings.Contains(manifest, "hugo-blog\n          image: '"+w.Image()+":"+first.Image.Tag) {
		t.Errorf("the manifest does not name %s again:\n%s", first.Image.Tag, manifest)
	}
	history := mustCall(t, w.Environment(), append([]string{"history", "--image=" + w.Image()}, w.OnGitOps()...)...)
	order := regexp.MustCompile(`(?s)rollback.*` + first.Image.Tag + `.*publish.*` + second.Image.Tag + `.*publish.*` + first.Image.Tag)
	if !order.MatchString(history) {
		t.Errorf("the history is not rollback, publish, publish:\n%s", history)
	}
}

func TestThePullRequestModeLeavesTheMainBranchAlone(t *testing.T) {
	needs.Most(t)
	w, source := world.New(t), newBlog(t)
	result := publishJSON(t, w, source, "--push-branch=castle/blog", "--pin-digest")
	if commits := w.Commits(t, "main"); len(commits) != 1 {
		t.Errorf("main got a commit: %q", commits)
	}
	if manifest := w.ManifestOn(t, "castle/blog"); !strings.Contains(manifest, result.Image.Tag+"@"+result.Image.Digest) {
		t.Errorf("the branch's manifest has no pinned digest:\n%s", manifest)
	}
}

func TestThisBlogPassesItsOwnChecks(t *testing.T) {
	needs.Most(t)
	mustCall(t, nil, "check-blog", "--headers=strict", "--source="+newBlog(t))
}

func TestTheFindingsOfABlogAreAFileAndABaselineThatItPasses(t *testing.T) {
	needs.Most(t)
	of := []string{"--path=.", "--source=" + newSite(t, map[string]string{
		"hugo.toml":         "baseURL = 'https://example.org/'\ntitle = 'Links'\nlocale = 'en'\n",
		"layouts/home.html": `<!doctype html><html lang="en"><head><title>Links</title></head><body><h1>Links</h1><a href="/gone/">gone</a></body></html>`,
		"content/_index.md": "---\ntitle: Links\n---\n",
	})}
	if done := call(t, nil, append([]string{"check-blog"}, of...)...); done.err == nil || !strings.Contains(done.stderr, "broken-link: /gone/") {
		t.Errorf("%v\n%s", done.err, done.stderr)
	}
	if findings := mustCall(t, nil, append(append([]string{"blog-findings"}, of...), "contents")...); !strings.Contains(findings, `"cause": "/gone/"`) {
		t.Errorf("the findings are %s", findings)
	}
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	mustCall(t, nil, append(append([]string{"blog-baseline"}, of...), "export", "--path="+baseline)...)
	if text := mustCall(t, nil, append(append([]string{"check-blog"}, of...), "--baseline="+baseline)...); !strings.Contains(text, "in the baseline") {
		t.Errorf("the check says %s", text)
	}
}

// untouched makes sure that neither the registry nor the GitOps repository changed.
func untouched(t *testing.T, w *world.World) {
	t.Helper()
	if commits := w.Commits(t, "main"); len(commits) != 1 {
		t.Errorf("the GitOps repository got a commit: %q", commits)
	}
	if tags, err := filepath.Glob(filepath.Join(w.RegistryDir, "repositories/me/blog/_tags/*")); err != nil || len(tags) != 0 {
		t.Errorf("the registry got tags: %v %v", tags, err)
	}
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// startService keeps a function's service up for the test, called in a folder, and returns its URL.
func startService(t *testing.T, folder string, environment, args []string, port int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	frontend := listener.Addr().(*net.TCPAddr).Port
	listener.Close()

	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	command, _, stderr := prepare(ctx, t, environment,
		append(append([]string{"call", "--progress=plain"}, args...), "up", fmt.Sprintf("--ports=%d:%d", frontend, port))...)
	command.Dir = folder
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() { cancel(); <-ended })

	base := fmt.Sprintf("http://localhost:%d", frontend)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if response, err := http.Get(base + "/healthz"); err == nil {
			response.Body.Close()
			return base
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the service ended: %v\n%s", err, stderr)
		case <-ctx.Done():
			t.Fatalf("the service did not answer within %s", callTimeout)
		case <-ticker.C:
		}
	}
}
