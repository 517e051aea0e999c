package worktree

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/tell"
)

func TestACleanTreeIsDescribed(t *testing.T) {
	r := newRepo(t)
	r.git("remote", "add", "origin", "https://user:s3cret@git.example/blog.git")
	commit := r.accepted()
	want := Commit{
		SHA: r.git("rev-parse", "HEAD"), Short: r.git("rev-parse", "HEAD")[:7], Time: commitTime, Subject: "First post",
		Branch: "main", RemoteURL: "https://git.example/blog.git", Source: "https://git.example/blog", TreeSHA: r.git("rev-parse", "HEAD:blog"),
	}
	got, err := json.Marshal(commit)
	r.must(err)
	expected, err := json.Marshal(want)
	r.must(err)
	if !bytes.Equal(got, expected) {
		t.Fatalf("commit\n%s\nwant\n%s", got, expected)
	}
}

func TestEverythingThatIsNotCommittedIsListedAtOnce(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{"staged", "modified", "both", "deleted", "removed", "renamed"} {
		r.write("blog/"+name, strings.Repeat(name+"\n", 20))
	}
	r.write(".gitignore", "*.tmp\n")
	r.commit("More")

	r.write("blog/staged", "staged\n")
	r.write("blog/both", "staged\n")
	r.write("blog/a file of\nits own", "x\n")
	r.git("add", "blog/staged", "blog/both", "blog/a file of\nits own")
	r.write("blog/both", "modified again\n")
	r.write("blog/modified", "modified\n")
	r.must(os.Remove(r.path("blog/deleted")))
	r.git("rm", "--quiet", "blog/removed")
	r.git("mv", "blog/renamed", "blog/new name")
	r.write("untracked", "x")
	r.write("drafts/one", "x")
	r.write("drafts/two", "x")
	r.write("ignored.tmp", "x")

	tell.Fault(t, "files that are staged, modified, deleted, renamed and untracked")
	r.refused(
		"blog/a file of\nits own: added; ",
		"blog/both: staged, then modified; ",
		"blog/deleted: deleted; ",
		"blog/modified: modified; ",
		"blog/new name: renamed from blog/renamed; ",
		"blog/removed: deletion staged; ",
		"blog/staged: staged; ",
		"drafts/: untracked; ",
		"untracked: untracked; ",
	)
}

func TestALongListIsCutAndCounted(t *testing.T) {
	r := newRepo(t)
	for i := range listed + 7 {
		r.write(fmt.Sprintf("blog/new-%02d", i), "x")
	}
	_, err := r.inspect()
	if err == nil || strings.Count(err.Error(), "\n") != listed+1 || !strings.HasSuffix(err.Error(), "and 7 more") {
		t.Fatalf("error = %v", err)
	}
}

func TestAConflictAndTheMergeItBelongsToAreNamed(t *testing.T) {
	r := newRepo(t)
	r.git("checkout", "--quiet", "-b", "other")
	r.write("blog/content/post.md", "theirs\n")
	r.commit("Theirs")
	r.git("checkout", "--quiet", "main")
	r.write("blog/content/post.md", "ours\n")
	r.commit("Ours")
	if _, err := r.tryGit("merge", "other"); err == nil {
		t.Fatal("the merge did not conflict")
	}
	r.refused("a merge is in progress: ", "blog/content/post.md: in conflict; ")
}

func TestARebaseInProgressIsNamedThoughNothingIsChanged(t *testing.T) {
	r := newRepo(t)
	r.write("blog/second", "x")
	r.commit("Second")
	r.git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "--quiet", "--interactive", "HEAD~1")
	r.refused("a rebase is in progress: ")
}

func TestACopyWithOtherTimesModesAndOwnerIsClean(t *testing.T) {
	r := newRepo(t)
	later := time.Now().Add(time.Hour)
	r.must(os.Chtimes(r.path("blog/content/post.md"), later, later))
	r.must(os.Chmod(r.path("blog/content/post.md"), 0o777))
	if os.Getuid() == 0 {
		r.must(filepath.WalkDir(r.dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, 12345, 12345)
		}))
	}
	index, err := os.ReadFile(r.path(".git/index"))
	r.must(err)
	r.accepted()
	after, err := os.ReadFile(r.path(".git/index"))
	r.must(err)
	if !bytes.Equal(index, after) {
		t.Error("the index was written")
	}
}

func TestACheckoutWithCRLFLineEndingsIsClean(t *testing.T) {
	r := newRepo(t)
	r.must(os.Remove(r.path("blog/content/post.md")))
	r.git("-c", "core.autocrlf=true", "checkout", "--quiet", "--", ".") // a setting of the other machine, unknown here
	if content, err := os.ReadFile(r.path("blog/content/post.md")); err != nil || string(content) != "hello\r\n" {
		t.Fatalf("%q, %v", content, err)
	}
	later := time.Now().Add(time.Hour)
	r.must(os.Chtimes(r.path("blog/content/post.md"), later, later))
	r.accepted()
	r.write("blog/content/post.md", "hello again\r\n")
	r.refused("blog/content/post.md: modified; ")
}

func TestAFileCommittedWithCRLFIsClean(t *testing.T) {
	r := newRepo(t)
	r.write("blog/content/windows.md", "one\r\ntwo\r\n")
	r.git("-c", "core.autocrlf=false", "add", ".")
	r.commit("CRLF")
	later := time.Now().Add(time.Hour)
	r.must(os.Chtimes(r.path("blog/content/windows.md"), later, later))
	r.accepted()
}

func TestAFileIgnoredOnlyByAGlobalIgnoreFileIsUntracked(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	if err := os.MkdirAll(filepath.Join(home, ".config/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config/git/ignore"), []byte(".DS_Store\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRepo(t)
	r.write("blog/.DS_Store", "x")
	r.refused("blog/.DS_Store: untracked; commit it, remove it, or name it in .gitignore (a global ignore file does not count here)")
}

func TestARepositoryWithoutCommitsIsRefused(t *testing.T) {
	r := emptyRepo(t)
	r.write("blog/hugo.yaml", "x: y\n")
	r.refused("the repository has no commit yet: ")
}

func TestAFolderThatTheCommitLacksIsRefusedWithTheRest(t *testing.T) {
	r := newRepo(t)
	r.write("site/hugo.yaml", "x: y\n")
	_, err := Inspect(t.Context(), Options{Dir: r.dir, Subdir: "site/"})
	r.expect(err, "site/: untracked; ", "site: no such folder in the commit; ")
	_, err = Inspect(t.Context(), Options{Dir: r.dir, Subdir: "blog/hugo.yaml"})
	r.expect(err, "site/: untracked; ", "blog/hugo.yaml: is a file; ")
}

func TestAFolderOutsideTheRepositoryIsRefused(t *testing.T) {
	for _, subdir := range []string{"..", "../other", "blog/../../other", "/etc"} {
		if _, err := Inspect(t.Context(), Options{Dir: t.TempDir(), Subdir: subdir}); err == nil ||
			!strings.Contains(err.Error(), "not inside the repository") {
			t.Errorf("%s: error = %v", subdir, err)
		}
	}
}

func TestASourceWithoutGitIsExplained(t *testing.T) {
	for name, dir := range map[string]string{
		"a plain folder":               t.TempDir(),
		"a folder inside a repository": newRepo(t).path("blog"),
	} {
		_, err := Inspect(t.Context(), Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "has no .git") || !strings.Contains(err.Error(), "Git URL") {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

func TestAnEmptyGitFolderIsExplained(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "has a .git that is no repository") {
		t.Fatalf("error = %v", err)
	}
}

func TestALinkedWorkingTreeCutOffFromItsRepositoryIsExplained(t *testing.T) {
	r := newRepo(t)
	linked := filepath.Join(t.TempDir(), "linked")
	r.git("worktree", "add", "--quiet", linked)
	if commit, err := Inspect(t.Context(), Options{Dir: linked, Subdir: "blog"}); err != nil || commit.Branch != "linked" {
		t.Fatalf("beside its repository: %+v, %v", commit, err)
	}
	r.must(os.RemoveAll(r.path(".git")))
	_, err := Inspect(t.Context(), Options{Dir: linked, Subdir: "blog"})
	if err == nil || !strings.Contains(err.Error(), "a linked working tree") || !strings.Contains(err.Error(), "git clone") {
		t.Fatalf("error = %v", err)
	}
}

func TestASubmoduleCutOffFromItsRepositoryIsExplained(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	alone := filepath.Join(t.TempDir(), "alone")
	r.must(os.CopyFS(alone, os.DirFS(r.path("blog/themes/plain"))))
	_, err := Inspect(t.Context(), Options{Dir: alone})
	if err == nil || !strings.Contains(err.Error(), "a submodule of another repository") {
		t.Fatalf("error = %v", err)
	}
}

func TestABareRepositoryIsExplained(t *testing.T) {
	r := newRepo(t)
	r.git("config", "core.bare", "true")
	if _, err := r.inspect(); err == nil || !strings.Contains(err.Error(), "bare repository") {
		t.Fatalf("error = %v", err)
	}
}

func TestADetachedHeadIsFine(t *testing.T) {
	r := newRepo(t)
	r.git("checkout", "--quiet", "--detach")
	commit := r.accepted()
	if !commit.Detached || commit.Branch != "" || commit.SHA != r.git("rev-parse", "HEAD") || len(commit.Notes) != 1 {
		t.Fatalf("%+v", commit)
	}
}

func TestASubmoduleAtItsRecordedCommitIsFine(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	r.accepted()
	if commit, err := r.clone("--recurse-submodules").inspect(); err != nil {
		t.Fatalf("%+v, %v", commit, err)
	}
}

func TestAMissingSubmoduleIsRefused(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	clone := r.clone()
	clone.refused("blog/themes/plain: the submodule is missing; run git submodule update --init --recursive")
	clone.must(os.Remove(clone.path("blog/themes/plain"))) // empty folders get lost on some ways of copying
	clone.refused("blog/themes/plain: the submodule is missing; ")
}

func TestAMovedSubmoduleIsRefused(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	inside := repo{t, r.path("blog/themes/plain")}
	inside.write("new", "x")
	inside.commit("Move on")
	r.refused("blog/themes/plain: the submodule is at another commit than the recorded one; commit the move (git add blog/themes/plain")
}

func TestChangesInsideSubmodulesAreListedByFile(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	part := emptyRepo(t)
	part.write("part.css", "a{}")
	part.commit("Part")
	inside := repo{t, r.path("blog/themes/plain")}
	inside.git("submodule", "--quiet", "add", "file://"+part.dir, "parts")
	inside.commit("Add a part")
	r.commit("Follow")
	r.accepted()

	inside.write("layouts/index.html", "changed\n")
	inside.write("parts/untracked.css", "b{}")
	r.refused(
		"blog/themes/plain/layouts/index.html: modified; ",
		"blog/themes/plain/parts/untracked.css: untracked; ",
	)
}

func TestAShallowCloneIsFineAndNoted(t *testing.T) {
	r := newRepo(t)
	r.write("blog/second", "x")
	r.commit("Second")
	clone := r.clone("--depth=1")
	commit := clone.accepted()
	if !commit.Shallow || len(commit.Notes) != 1 || !strings.Contains(commit.Notes[0], "shallow") || !strings.Contains(commit.Notes[0], commit.Short) {
		t.Fatalf("%+v", commit)
	}
}

func TestAShallowCloneIsRefusedWhereTheSiteReadsTheHistory(t *testing.T) {
	r := newRepo(t)
	r.write("blog/hugo.yaml", "enableGitInfo: true\n")
	r.commit("Dates from Git")
	r.clone("--depth=1").refused("the clone is shallow, but the site takes its dates from the history (enableGitInfo), so they would be wrong: run git fetch --unshallow")
	if commit := r.clone().accepted(); !commit.GitInfo || commit.Shallow {
		t.Fatalf("%+v", commit)
	}
}

func TestEnableGitInfoIsFoundWhereHugoLooks(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"in TOML", map[string]string{"hugo.toml": "enableGitInfo = true\n[params]\nx = 1\n"}, true},
		{"in JSON", map[string]string{"config.json": `{"enableGitInfo": true}`}, true},
		{"in any case", map[string]string{"hugo.yml": "enablegitinfo: true\n"}, true},
		{"in a configuration folder", map[string]string{"config/_default/hugo.toml": "enableGitInfo = true"}, true},
		{"production wins", map[string]string{"hugo.toml": "enableGitInfo = true", "config/production/hugo.toml": "enableGitInfo = false"}, false},
		{"the first name wins", map[string]string{"hugo.toml": "title = 'x'", "config.toml": "enableGitInfo = true"}, false},
		{"not below the top level", map[string]string{"hugo.yaml": "params:\n  enableGitInfo: true\n"}, false},
		{"not in a comment", map[string]string{"hugo.yaml": "# enableGitInfo: true\n"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := emptyRepo(t)
			for name, content := range test.files {
				r.write("blog/"+name, content)
			}
			r.commit("Site")
			if commit := r.accepted(); commit.GitInfo != test.want {
				t.Fatalf("GitInfo = %v", commit.GitInfo)
			}
		})
	}
}

func TestAConfigurationThatCannotBeReadIsNamed(t *testing.T) {
	r := emptyRepo(t)
	r.write("blog/hugo.toml", "title =\n")
	r.commit("Broken")
	if _, err := r.inspect(); err == nil || !strings.HasPrefix(err.Error(), "blog/hugo.toml: ") {
		t.Fatalf("error = %v", err)
	}
}

func TestGitLFSIsRefusedInTheSiteAndIgnoredElsewhere(t *testing.T) {
	r := newRepo(t)
	picture := "a picture"
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(picture)), len(picture))
	r.write(".gitattributes", "*.psd filter=lfs\n")
	r.write("art/draft.psd", pointer)
	r.commit("Art")
	r.git("config", "filter.lfs.clean", "false")
	r.git("config", "filter.lfs.process", "missing-program")
	r.git("config", "filter.lfs.required", "true")
	r.write("art/draft.psd", picture) // as git lfs checks it out
	r.accepted()
	r.write("art/draft.psd", "another picture")
	r.refused(`art/draft.psd: modified, or only stored through the filter "lfs"`)
	r.write("art/draft.psd", pointer)

	r.write("blog/static/cover.psd", pointer)
	r.git("config", "--remove-section", "filter.lfs")
	r.commit("Cover")
	r.refused("blog/static/cover.psd: is kept in Git LFS")
	_, err := Export(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.expect(err, "blog/static/cover.psd: is kept in Git LFS")
}

func TestAFilterOfTheOriginalMachineIsNotRun(t *testing.T) {
	r := newRepo(t)
	picture := "a picture"
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(picture)), len(picture))
	r.write(".gitattributes", "*.psd filter=lfs\n")
	r.write("art/draft.psd", pointer)
	r.write("blog/notes.txt", "notes\n")
	r.commit("Art")
	r.must(os.Remove(r.path("art/draft.psd")))
	r.git("config", "filter.lfs.smudge", "printf '"+picture+"'") // what git lfs does, with all that the index then knows of the file
	r.git("checkout", "--quiet", "--", ".")
	later := time.Now().Add(time.Hour)
	r.must(os.Chtimes(r.path("art/draft.psd"), later, later))

	r.git("config", "filter.lfs.process", "missing-program")
	r.git("config", "filter.lfs.required", "true")
	// Options of git on its command line end a key at the first equals sign.
	r.write(".git/info/attributes", "*.md filter=other\n*.txt filter=a=b\n")
	ran := filepath.Join(t.TempDir(), "ran")
	r.git("config", "filter.other.clean", "touch "+ran+"; cat")
	r.git("config", "filter.a=b.clean", "touch "+ran+"; cat")
	r.must(os.Chtimes(r.path("blog/content/post.md"), later, later))
	r.must(os.Chtimes(r.path("blog/notes.txt"), later, later))
	r.accepted()
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("a program of the repository's configuration ran")
	}
}

// A submodule has a configuration of its own, which comes with the copy of the machine that it was made on.
func TestNoProgramOfASubmodulesConfigurationIsRun(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	ran := filepath.Join(t.TempDir(), "ran")
	program := "touch " + ran + "; cat"
	r.git("config", "submodule.blog/themes/plain.update", "!touch "+ran)

	r.write(".git/modules/blog/themes/plain/info/attributes", "* filter=evil diff=evil\n")
	inside := repo{t, r.path("blog/themes/plain")}
	for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external", "core.pager", "core.sshCommand", "core.askPass"} {
		inside.git("config", key, program)
	}
	monitor := filepath.Join(t.TempDir(), "monitor")
	r.must(os.WriteFile(monitor, []byte("#!/bin/sh\n"+program+"\n"), 0o755))
	inside.git("config", "core.fsmonitor", monitor)
	inside.git("config", "core.alternateRefsCommand", monitor)
	later := time.Now().Add(time.Hour) // git looks at the content
	r.must(os.Chtimes(r.path("blog/themes/plain/layouts/index.html"), later, later))

	r.accepted()
	if _, has := snapshot(t, r.export())["themes/plain/layouts/index.html"]; !has {
		t.Error("the theme's page is not exported")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("a program of the submodule's configuration ran")
	}
}

func TestAPartialCloneIsExplained(t *testing.T) {
	r := newRepo(t)
	r.git("config", "uploadpack.allowFilter", "true")
	clone := r.clone("--filter=blob:none", "--no-checkout")
	clone.git("sparse-checkout", "set", "--no-cone", "nothing")
	clone.git("checkout", "--quiet")
	r.must(os.RemoveAll(r.path(".git"))) // nobody to ask for the rest
	if _, err := clone.inspect(); !errors.Is(err, errPartialClone) || !strings.Contains(err.Error(), "clone anew without --filter") {
		t.Fatalf("error = %v", err)
	}
}

func TestCredentialsAreStrippedFromTheRemote(t *testing.T) {
	for address, want := range map[string]string{
		"https://token@git.example/a.git":           "https://git.example/a.git",
		"https://user:token@git.example:8443/a.git": "https://git.example:8443/a.git",
		"ssh://git:token@git.example/a.git":         "ssh://git@git.example/a.git",
		"git@git.example:a.git":                     "git@git.example:a.git",
		"/srv/git/a.git":                            "/srv/git/a.git",
		"https://me:p^ss@git.example/a.git":         "https://git.example/a.git", // which Go's parser refuses, and Git takes
		"https://me:100%safe@git.example/a.git":     "https://git.example/a.git",
		"https://me:a/b@git.example/a.git":          "https://git.example/a.git",
		"https://git.example/a.git":                 "https://git.example/a.git",
	} {
		if got := withoutCredentials(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func TestTheRemoteIsThatOfTheBranch(t *testing.T) {
	r := newRepo(t)
	r.git("remote", "add", "only", "https://git.example/only.git")
	if got := r.accepted().RemoteURL; got != "https://git.example/only.git" {
		t.Errorf("the only remote: %q", got)
	}
	r.git("remote", "add", "origin", "https://git.example/origin.git")
	if got := r.accepted().RemoteURL; got != "https://git.example/origin.git" {
		t.Errorf("origin: %q", got)
	}
	r.git("config", "branch.main.remote", "only")
	if got := r.accepted().RemoteURL; got != "https://git.example/only.git" {
		t.Errorf("the branch's own: %q", got)
	}
}

// TestAnAmbiguousShortSHAGetsLonger makes a commit and a blob whose SHAs share their first seven characters. Trying every
// pair of some 30,000 of each is 2^30 pairs for 2^28 prefixes.
func TestAnAmbiguousShortSHAGetsLonger(t *testing.T) {
	r := newRepo(t)
	object := func(kind, content string) string {
		sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content))
		return hex.EncodeToString(sum[:])
	}
	header := "tree " + r.git("rev-parse", "HEAD^{tree}") + "\nauthor A <a@example.org> 1714979289 +0000\n" +
		"committer A <a@example.org> 1714979289 +0000\n\n"
	const tries = 1 << 15
	commits := make(map[string]int, tries)
	for i := range tries {
		commits[object("commit", fmt.Sprintf("%sNumber %d\n", header, i))[:7]] = i
	}
	for i := 0; ; i++ {
		blob := fmt.Sprintf("blob %d\n", i)
		number, ok := commits[object("blob", blob)[:7]]
		if !ok {
			continue
		}
		store := func(kind, content string) string {
			r.must(os.WriteFile(r.path(".git/object"), []byte(content), 0o644))
			return r.git("hash-object", "-t", kind, "-w", ".git/object")
		}
		other := store("blob", blob)
		sha := store("commit", fmt.Sprintf("%sNumber %d\n", header, number))
		r.git("reset", "--quiet", "--hard", sha)
		commit := r.accepted()
		if commit.SHA != sha || len(commit.Short) <= 7 || !strings.HasPrefix(sha, commit.Short) || strings.HasPrefix(other, commit.Short) {
			t.Fatalf("commit %s beside blob %s is shortened to %s", sha, other, commit.Short)
		}
		return
	}
}

func TestTheUsersAbbreviationDoesNotCount(t *testing.T) {
	r := newRepo(t)
	r.git("config", "core.abbrev", "12")
	if short := r.accepted().Short; len(short) != 7 {
		t.Fatalf("short SHA %s", short)
	}
}

func TestARefusalIsTerminalByItsType(t *testing.T) {
	r := newRepo(t)
	r.write("new", "x")
	_, err := r.inspect()
	var refused *RefusedError
	if !errors.As(fmt.Errorf("publish: %w", err), &refused) || refused.Problems[0].Path != "new" {
		t.Fatalf("error = %v", err)
	}
}
