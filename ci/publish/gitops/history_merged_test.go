package gitops

import (
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/git"
)

// merged is a remote with a clone, in which pull requests are merged as GitHub does it.
type merged struct {
	*remote
	clone git.Runner
	day   int
}

func newMerged(t *testing.T) *merged {
	t.Helper()
	r := newRemote(t, nil)
	m := &merged{remote: r, clone: git.Runner{Dir: t.TempDir()}}
	m.run(t, "clone", "--quiet", r.bare, ".")
	return m
}

// run runs git in the clone, a day later each time: what is merged is older than the merge.
func (m *merged) run(t *testing.T, args ...string) string {
	t.Helper()
	m.day++
	date := time.Now().AddDate(0, 0, m.day).Format(time.RFC3339)
	runner := m.clone
	runner.Env = []string{
		"GIT_AUTHOR_NAME=Some Person", "GIT_AUTHOR_EMAIL=person@example.org", "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.com", "GIT_COMMITTER_DATE=" + date,
	}
	out, err := runner.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// propose publishes onto a branch of its own.
func (m *merged) propose(t *testing.T, commit string) (branch string) {
	t.Helper()
	request := publish(commit)
	request.PushBranch = "castle/" + commit
	mustUpdate(t, m.repository, request)
	return "origin/" + request.PushBranch
}

// entries are the history's: "action tag source digest" each, which must be at the given commits of main.
func (m *merged) expect(t *testing.T, want ...string) Entries {
	t.Helper()
	entries, err := History(t.Context(), m.repository, manifestPath, blog, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		line := string(e.Action) + " " + e.New.Tag
		if e.Digest != "" {
			line += " " + e.Digest[7:14]
		}
		if e.SourceCommit != "" {
			line += " " + e.SourceCommit[:7]
		}
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the history is\n%s\nwant\n%s\nlog:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), m.git(t, "log", "--graph", "--oneline", "main"))
	}
	return entries
}

const started = "blog-0000000"

func TestHistoryHasAMergedPullRequestOnceAsTheMergeThatFluxGot(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{
		"the file as it was when the branch began": "",
		"another line of the file changed":         "# the blog\n" + deployment,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMerged(t)
			branch := m.propose(t, "3f2a1bc")
			if between != "" {
				m.commit(t, "Another line", map[string]string{manifestPath: between})
			}
			m.run(t, "pull", "--quiet")
			m.run(t, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #1 from me/castle\n\nPublish", branch)
			m.run(t, "push", "--quiet")
			entries := m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", started)
			if tip := m.run(t, "rev-parse", "HEAD"); entries[0].Commit != tip || entries[0].Author != "Some Person" {
				t.Errorf("the entry is %s by %s, want the merge %s", entries[0].Commit, entries[0].Author, tip)
			}
			if found, err := entries.Find("3f2a"); err != nil || found.Digest != digestOf("3f2a1bc") {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

func TestHistoryHasASquashedPullRequestWhateverGitHubMadeOfItsMessage(t *testing.T) {
	t.Parallel()
	own := "Publish tazzo/tazlab.net:blog-3f2a1bc\n\nWas x.\n\nCastle-Action: publish\nSource-Commit: 3f2a1bc" + strings.Repeat("0", 33) +
		"\nImage-Digest: " + digestOf("3f2a1bc") + "\n"
	for name, message := range map[string]string{
		"the commit's own":       own,
		"with co-authors behind": own + "\n---------\n\nCo-authored-by: Castle <castle@localhost>\n",
		"edited in a browser":    strings.ReplaceAll(own, "\n", "\r\n"),
		"of several commits":     "Publish (#1)\n\n* " + strings.ReplaceAll(own, "3f2a1bc", "1111111") + "\n* " + own,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMerged(t)
			branch := m.propose(t, "3f2a1bc")
			m.run(t, "fetch", "--quiet")
			m.run(t, "merge", "--quiet", "--squash", branch)
			m.run(t, "commit", "--quiet", "--cleanup=verbatim", "-m", message)
			m.run(t, "push", "--quiet")
			m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", started)
		})
	}
}

func TestASquashedPullRequestWithAnEmptyMessageIsFoundByItsTag(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	branch := m.propose(t, "3f2a1bc")
	m.run(t, "fetch", "--quiet")
	m.run(t, "merge", "--quiet", "--squash", branch)
	m.run(t, "commit", "--quiet", "-m", "Publish (#1)")
	m.run(t, "push", "--quiet")
	if found, err := m.expect(t, " blog-3f2a1bc"[1:], started).Find("3f2a"); err != nil || found.New.Tag != "blog-3f2a1bc" {
		t.Errorf("%+v %v", found, err)
	}
}

func TestHistoryHasARebasedPullRequest(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	branch := m.propose(t, "3f2a1bc")
	m.commit(t, "Unrelated", map[string]string{"README.md": "x\n"})
	m.run(t, "pull", "--quiet")
	m.run(t, "cherry-pick", branch)
	m.run(t, "push", "--quiet")
	m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", started)
}

func TestWhatAMergePutAsideStaysInHistory(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	branch := m.propose(t, "3f2a1bc")
	mustUpdate(t, m.repository, publish("5555555"))
	m.run(t, "pull", "--quiet")
	// The conflict is resolved in favour of the pull request, whose file is taken whole.
	m.run(t, "merge", "--quiet", "--no-ff", "-X", "theirs", "-m", "Merge pull request #1", branch)
	m.run(t, "push", "--quiet")
	m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", "publish blog-5555555 5555555 5555555", started)
}

// What a merge put aside may be the newest in the log.
func TestWhatTheManifestNamesIsNotWhatAMergePutAside(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	mustUpdate(t, m.repository, publish("5555555"))
	branch := m.propose(t, "3f2a1bc")
	m.run(t, "pull", "--quiet")
	m.run(t, "merge", "--quiet", "--no-ff", "-s", "ours", "-m", "Merge pull request #1", branch)
	m.run(t, "push", "--quiet")
	m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", "publish blog-5555555 5555555 5555555", started)
	named, err := Named(t.Context(), m.repository, manifestPath, blog)
	if err != nil || named.New.Tag != "blog-5555555" || named.Digest != digestOf("5555555") {
		t.Errorf("named is %+v, %v", named, err)
	}
}

func TestMainMergedIntoABranchOfSomethingElseIsNoPublishOfItsOwn(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	m.git(t, "branch", "port", "main")
	m.commitOn(t, "port", "Another line", map[string]string{manifestPath: "# the blog\n" + deployment})
	first := mustUpdate(t, m.repository, publish("3f2a1bc"))
	m.run(t, "fetch", "--quiet")
	m.run(t, "checkout", "--quiet", "-B", "port", "origin/port")
	m.run(t, "merge", "--quiet", "-m", "Merge main", "origin/main")
	m.run(t, "checkout", "--quiet", "-B", "main", "origin/main")
	m.run(t, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #2", "port")
	m.run(t, "push", "--quiet", "origin", "main")
	if entries := m.expect(t, "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", started); entries[0].Commit != first.Commit {
		t.Errorf("the entry is %s, want %s", entries[0].Commit, first.Commit)
	}
}

func TestAMergedPublishMeanwhileIsNoConflict(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	branch := m.propose(t, "3f2a1bc")
	m.beforeFirstPush(func() {
		m.run(t, "fetch", "--quiet")
		m.run(t, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #1", branch)
		m.run(t, "push", "--quiet")
	})
	if result := mustUpdate(t, m.repository, publish("5555555")); result.Attempts != 2 {
		t.Errorf("%+v", result)
	}
	m.expect(t, "publish blog-5555555 5555555 5555555", "publish blog-3f2a1bc 3f2a1bc 3f2a1bc", started)
}
