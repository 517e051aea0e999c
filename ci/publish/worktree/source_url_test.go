package worktree

import "testing"

func TestEveryWayToTheSameRemoteGivesTheSameSource(t *testing.T) {
	for _, remote := range []string{
		"https://github.com/me/blog", "https://github.com/me/blog.git", "https://GitHub.com/me/blog/", "git@github.com:me/blog.git",
		"ssh://git@github.com/me/blog.git", "ssh://git@github.com:22/me/blog", "git://github.com/me/blog.git",
	} {
		if got, want := sourceURL(remote), "https://github.com/me/blog"; got != want {
			t.Errorf("%s: got %q, want %q", remote, got, want)
		}
	}
}

func TestARemoteOnThisMachineIsNoSource(t *testing.T) {
	for _, remote := range []string{"", "/srv/git/blog.git", "../blog", "./a:b/blog", "file:///srv/git/blog.git"} {
		if got := sourceURL(remote); got != "" {
			t.Errorf("%s: got %q, want none", remote, got)
		}
	}
}
