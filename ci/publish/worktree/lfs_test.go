package worktree

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// pointerTo is the pointer of a content, and the place of that among the objects of Git LFS.
func pointerTo(content string) (pointer, object string) {
	oid := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content)), "objects/" + oid[:2] + "/" + oid[2:4] + "/" + oid
}

const cover = "blog/static/cover.png"

// newLFSRepo has a picture whose content is nowhere.
func newLFSRepo(t *testing.T) (r repo, object string) {
	t.Helper()
	r = newRepo(t)
	pointer, object := pointerTo("a picture")
	r.write(".gitattributes", "*.png filter=lfs diff=lfs merge=lfs -text\n")
	r.write(cover, pointer)
	r.commit("Cover")
	return r, object
}

// exportsPicture expects the picture in the export of an accepted tree.
func (r repo) exportsPicture() {
	r.t.Helper()
	r.accepted()
	if got := snapshot(r.t, r.export())["static/cover.png"]; got != "-rw-r--r-- a picture" {
		r.t.Fatalf("exported %q", got)
	}
}

const lacksPicture = cover + ": is kept in Git LFS, and its content is not in this clone; run git lfs pull, or set lfs: true in actions/checkout"

func (r repo) lacksPicture() {
	r.t.Helper()
	r.refused(lacksPicture)
	_, err := Export(r.t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(r.t.TempDir(), "site"))
	r.expect(err, lacksPicture)
}

func TestContentInGitLFSIsTakenFromTheClone(t *testing.T) {
	r, object := newLFSRepo(t)
	r.lacksPicture()
	r.write(".git/lfs/"+object, "a picture")
	r.exportsPicture()
}

func TestContentInGitLFSIsTakenFromTheCheckedOutFile(t *testing.T) {
	r, _ := newLFSRepo(t)
	r.write(cover, "a picture")
	r.exportsPicture()
}

func TestDamagedContentInGitLFSIsNotTaken(t *testing.T) {
	r, object := newLFSRepo(t)
	r.write(".git/lfs/"+object, "a picturE")
	r.lacksPicture()
	r.write(".git/lfs/"+object, "half")
	r.lacksPicture()
	r.write(cover, "a picture")
	r.exportsPicture()
}

func TestTheStorageOfGitLFSMayBeElsewhere(t *testing.T) {
	r, object := newLFSRepo(t)
	r.git("config", "lfs.storage", "large")
	r.write(".git/large/"+object, "a picture")
	r.exportsPicture()

	elsewhere := repo{t, t.TempDir()}
	elsewhere.write(object, "a picture")
	r.must(os.RemoveAll(r.path(".git/large")))
	r.lacksPicture()
	r.git("config", "lfs.storage", elsewhere.dir)
	r.exportsPicture()
}

func TestALinkedWorkingTreeHasItsRepositorysGitLFS(t *testing.T) {
	r, object := newLFSRepo(t)
	r.write(".git/lfs/"+object, "a picture")
	linked := repo{t, filepath.Join(t.TempDir(), "linked")}
	r.git("worktree", "add", "--quiet", "--detach", linked.dir)
	linked.exportsPicture()
}

func TestASubmoduleHasItsOwnGitLFS(t *testing.T) {
	r := newRepo(t)
	theme := r.addTheme()
	pointer, object := pointerTo("a picture")
	theme.write("static/cover.png", pointer)
	theme.commit("Cover")
	inside := repo{t, r.path("blog/themes/plain")}
	inside.git("pull", "--quiet")
	r.commit("Move the theme")
	r.refused("blog/themes/plain/static/cover.png: is kept in Git LFS, and its content is not in this clone")
	r.write(".git/modules/blog/themes/plain/lfs/"+object, "a picture")
	r.accepted()
	if got := snapshot(t, r.export())["themes/plain/static/cover.png"]; got != "-rw-r--r-- a picture" {
		t.Fatalf("exported %q", got)
	}
}

func TestAPointerThatOnlyAnExtensionResolvesIsRefused(t *testing.T) {
	r, object := newLFSRepo(t)
	pointer, _ := pointerTo("a picture")
	version, rest, _ := strings.Cut(pointer, "\n")
	r.write(cover, version+"\next-0-case sha256:"+strings.Repeat("0", 64)+"\n"+rest)
	r.commit("With an extension")
	r.write(".git/lfs/"+object, "a picture")
	r.lacksPicture()
}

func TestAFileThatChangesWhileItIsCopiedIsNoContent(t *testing.T) {
	r, object := newLFSRepo(t)
	pointer, _ := pointerTo("a picture")
	wanted, _ := parsePointer(pointer)
	r.write(object, "a picturE")
	if err := wanted.copy(io.Discard, r.path(object)); err == nil || !strings.Contains(err.Error(), errOtherContent.Error()) {
		t.Fatalf("error = %v", err)
	}
}

func TestARealCloneWithGitLFSIsPublished(t *testing.T) {
	needs.Command(t, "git-lfs", "git-lfs")
	r := newRepo(t)
	r.git("lfs", "install", "--local")
	r.git("lfs", "track", "*.png")
	r.write(cover, "a picture")
	sha := r.commit("Cover")
	if held := r.git("cat-file", "blob", "HEAD:"+cover); !strings.HasPrefix(held, "version https://git-lfs") {
		t.Fatalf("git lfs did not keep the picture: the commit holds %q", held)
	}
	r.exportsPicture()
	want := snapshot(t, r.export())

	clone := repo{t, filepath.Join(t.TempDir(), "clone")}
	t.Setenv("GIT_LFS_SKIP_SMUDGE", "1")
	r.git("clone", "--quiet", "file://"+r.dir, clone.dir)
	clone.lacksPicture()
	clone.git("lfs", "install", "--local")
	clone.git("lfs", "fetch")
	clone.exportsPicture() // fetched and not checked out
	clone.git("lfs", "checkout")
	clone.exportsPicture()
	expectFiles(t, snapshot(t, clone.export()), want)
	if commit := clone.accepted(); commit.SHA != sha {
		t.Fatalf("commit %s, want %s", commit.SHA, sha)
	}
}
