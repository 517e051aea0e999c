package worktree

import "testing"

func (r repo) cacheKey(subdir string) string {
	r.t.Helper()
	key, err := CacheKey(r.t.Context(), Options{Dir: r.dir, Subdir: subdir})
	if err != nil || len(key) != 32 {
		r.t.Fatalf("%q, %v", key, err)
	}
	return key
}

func TestTheCommitsOfASiteShareACache(t *testing.T) {
	r := newRepo(t)
	r.git("remote", "add", "origin", "somewhere")
	for _, remote := range []string{"/srv/git/blog.git", "https://github.com/me/blog", ""} {
		if remote == "" {
			r.git("remote", "remove", "origin")
		} else {
			r.git("remote", "set-url", "origin", remote)
		}
		before := r.cacheKey("blog")
		r.write("blog/content/post.md", "more for "+remote+"\n")
		if got := r.cacheKey("blog/"); got != before {
			t.Errorf("%q: an edit changes the key", remote)
		}
		r.commit("Write more")
		if got := r.cacheKey("blog"); got != before {
			t.Errorf("%q: a commit changes the key", remote)
		}
	}
}

// A site that is a copy of another one, or calls itself like it, must not get at what that one's builds read.
func TestNoOtherSiteGetsTheCacheOfASite(t *testing.T) {
	mine := newRepo(t)
	mine.git("remote", "add", "origin", "https://github.com/me/blog")
	keys := map[string]string{}
	add := func(name, key string) {
		t.Helper()
		for other, known := range keys {
			if known == key {
				t.Errorf("%s has the cache of %s", name, other)
			}
		}
		keys[name] = key
	}
	add("the site", mine.cacheKey("blog"))
	add("another site of the repository", mine.cacheKey("."))

	fork := mine.clone()
	add("a clone on this machine", fork.cacheKey("blog"))
	fork.git("remote", "set-url", "origin", "https://github.com/somebody/blog")
	fork.write("castle.yaml", "sites: {blog: {path: blog, image: me/blog}}\n")
	fork.write("blog/hugo.yaml", "baseURL: https://github.com/me/blog\n")
	fork.commit("Pretend to be the other one")
	add("a fork that says the same of itself", fork.cacheKey("blog"))
	fork.git("remote", "set-url", "origin", "https://github.com:8443/me/blog")
	add("another server of the same host", fork.cacheKey("blog"))
	fork.git("remote", "remove", "origin")
	add("a fork without a remote", fork.cacheKey("blog"))

	other := emptyRepo(t)
	other.write("blog/hugo.yaml", "title: Another\n")
	other.commit("Another first commit")
	add("another one without a remote", other.cacheKey("blog"))
	other.git("remote", "add", "origin", "../blog")
	add("one with a relative path for a remote", other.cacheKey("blog"))
}

func TestWhatIsNoRepositoryHasNoCacheKey(t *testing.T) {
	if key, err := CacheKey(t.Context(), Options{Dir: t.TempDir()}); err == nil || key != "" {
		t.Errorf("%q, %v", key, err)
	}
}
