package publishtest

import (
	"testing"
	"time"

	"tazlab.net/castle/ci/publish/pullrequest"
	"tazlab.net/castle/ci/publish/pullrequest/githubtest"
)

// GitHub is the API beside the world's GitOps repository, whose main branch takes no pushes from then on.
func (w *World) GitHub(t *testing.T) *githubtest.Server {
	t.Helper()
	server := githubtest.New(t, w.Bare(), "me", "tazlab-k8s", GitToken)
	server.Protect("main")
	return server
}

// ByPullRequest are the options for it.
func ByPullRequest(server *githubtest.Server, wait time.Duration) pullrequest.Options {
	return pullrequest.Options{Use: true, API: server.URL, Wait: wait, Every: 20 * time.Millisecond}
}
