// Package githubtest plays the part of GitHub's REST API that pull requests need, over a real bare repository: what a branch
// holds is what was pushed there, and a merge is a commit in it. It refuses what GitHub refuses; each rule names the page that
// it is from. What only GitHub can know (reviews, checks) the test sets.
package githubtest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/git"
)

// Fault answers one request in the API's place; true: it has.
type Fault func(http.ResponseWriter, *http.Request) bool

// Server is GitHub with one repository.
type Server struct {
	// URL is the API's address, to be given as --github-api.
	URL   string
	Owner string
	Name  string

	t     *testing.T
	bare  string
	token string

	mu       sync.Mutex
	pulls    []*pull
	faults   []Fault
	requests []string
	reviews  bool // a review is missing
	strict   bool // branches must be up to date before merging
	looked   func(number int)
	looking  sync.Mutex // looked runs once at a time
}

// pull is a pull request.
type pull struct {
	number            int
	title, body       string
	head, base        string
	state             string
	merged            bool
	mergedAt          time.Time
	commit            string // of the merge
	seen              string // head and base when mergeability was worked out last
	created, modified time.Time
}

// New serves the API of the repository OWNER/NAME, which is the bare one in the folder.
func New(t *testing.T, bare, owner, name, token string) *Server {
	t.Helper()
	s := &Server{t: t, bare: bare, Owner: owner, Name: name, token: token}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL + "/api/v3/"
	return s
}

// Protect lets nobody push to a branch, as a rule of the repository does that wants pull requests:
// https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches.
// The merges of this server are the only way then.
func (s *Server) Protect(branch string) {
	s.t.Helper()
	hook := filepath.Join(s.bare, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		s.t.Fatal(err)
	}
	script := "#!/bin/sh\n[ \"$1\" = refs/heads/" + branch + " ] || exit 0\n" +
		"echo 'error: GH006: Protected branch update failed for refs/heads/" + branch + ".' >&2\nexit 1\n"
	if err := os.WriteFile(hook, []byte(script), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// Fail has the next request answered by a fault.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Answer is a fault with a status, headers ("Name: value") and a message.
func Answer(status int, message string, headers ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		fail(w, status, message)
		return true
	}
}

// Lose carries a request out, and keeps the answer. It is for a fault, which runs while the server is locked.
func (s *Server) Lose(r *http.Request) {
	s.notice()
	s.create(httptest.NewRecorder(), r)
}

// RequireReviews says that nothing can be merged before a review, and RequireUpToDate that a branch must hold its base's tip.
func (s *Server) RequireReviews(on bool) { s.mu.Lock(); defer s.mu.Unlock(); s.reviews = on }

// RequireUpToDate is the rule "Require branches to be up to date before merging".
func (s *Server) RequireUpToDate(on bool) { s.mu.Lock(); defer s.mu.Unlock(); s.strict = on }

// OnLook is called each time after one pull request was asked for, with its number.
func (s *Server) OnLook(do func(number int)) { s.mu.Lock(); defer s.mu.Unlock(); s.looked = do }

// Requests are "METHOD path" of all requests so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Pull is a pull request as a person sees it.
type Pull struct {
	Number                         int
	Title, Body, Head, Base, State string
	Merged                         bool
}

// Pulls are all, oldest first.
func (s *Server) Pulls() []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice()
	var all []Pull
	for _, p := range s.pulls {
		all = append(all, Pull{p.number, p.title, p.body, p.head, p.base, p.state, p.merged})
	}
	return all
}

// Close closes a pull request without merging it, as a person does.
func (s *Server) Close(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulls[number-1].state = "closed"
}

// Ways to merge: https://docs.github.com/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges.
const (
	ByMerge  = "merge"
	BySquash = "squash"
	ByRebase = "rebase"
)

// Merge merges as a person does by the button, and returns the base's new commit. It is an error where GitHub would not offer it.
func (s *Server) Merge(number int, way string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice()
	p := s.pulls[number-1]
	if p.state != "open" {
		return "", fmt.Errorf("#%d is %s", number, p.state)
	}
	if state := s.mergeable(p); state != "clean" {
		return "", fmt.Errorf("#%d cannot be merged: it is %s", number, state)
	}
	head, base := s.tip(p.head), s.tip(p.base)
	tree, _ := s.git("merge-tree", "--write-tree", base, head)
	own, _ := s.git("log", "-1", "--format=%B", head)
	args := []string{"commit-tree", tree, "-p", base}
	switch way {
	case ByMerge:
		args = append(args, "-p", head, "-m", fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s", number, s.Owner, p.head, p.title))
	case BySquash:
		// With the commit's message, which is the default for a single one, and the author of the commit as co-author.
		subject, rest, _ := strings.Cut(own, "\n")
		args = append(args, "-m", fmt.Sprintf("%s (#%d)\n%s\n\n---------\n\nCo-authored-by: Castle <castle@localhost>", subject, number, rest))
	case ByRebase:
		args = append(args, "-m", own)
	}
	commit, err := s.git(args...)
	if err != nil {
		return "", err
	}
	if _, err := s.git("update-ref", "refs/heads/"+p.base, commit, base); err != nil {
		return "", err
	}
	p.state, p.merged, p.mergedAt, p.commit = "closed", true, time.Now().UTC(), commit
	return commit, nil
}

// git runs git as GitHub does, past all hooks.
func (s *Server) git(args ...string) (string, error) {
	runner := git.Runner{Dir: s.bare, Env: []string{
		"GIT_AUTHOR_NAME=Some Person", "GIT_AUTHOR_EMAIL=person@example.org", "GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.com",
	}}
	out, err := runner.Run(s.t.Context(), args...)
	return strings.TrimSpace(out), err
}

func (s *Server) tip(branch string) string {
	tip, err := s.git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return tip
}

func (s *Server) ancestor(older, newer string) bool {
	_, err := s.git("merge-base", "--is-ancestor", older, newer)
	return err == nil
}

// notice takes up what was pushed: a pull request is merged when its base holds its head, and closed when its branch is gone:
// https://docs.github.com/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges#indirect-merges.
func (s *Server) notice() {
	for _, p := range s.pulls {
		if p.state != "open" {
			continue
		}
		head, base := s.tip(p.head), s.tip(p.base)
		switch {
		case head == "":
			p.state = "closed"
		case s.ancestor(head, base):
			p.state, p.merged, p.mergedAt, p.commit = "closed", true, time.Now().UTC(), head
		}
	}
}

// mergeable is mergeable_state, by https://docs.github.com/graphql/reference/enums#mergestatestatus.
func (s *Server) mergeable(p *pull) string {
	head, base := s.tip(p.head), s.tip(p.base)
	if _, err := s.git("merge-tree", "--write-tree", base, head); err != nil {
		return "dirty"
	}
	switch {
	case s.strict && !s.ancestor(base, head):
		return "behind"
	case s.reviews:
		return "blocked"
	}
	return "clean"
}

func fail(w http.ResponseWriter, status int, message string, errors ...map[string]string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	answer := map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
	if len(errors) > 0 {
		answer["errors"] = errors
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if len(s.faults) > 0 {
		fault := s.faults[0]
		s.faults = s.faults[1:]
		if fault(w, r) {
			return
		}
	}
	// https://docs.github.com/rest/authentication/authenticating-to-the-rest-api: with invalid credentials 401, Bad credentials.
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
		fail(w, http.StatusUnauthorized, "Bad credentials")
		return
	}
	// https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api#404-not-found-for-an-existing-resource.
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v3/repos/"+s.Owner+"/"+s.Name+"/pulls")
	if !ok {
		fail(w, http.StatusNotFound, "Not Found")
		return
	}
	s.notice()
	switch {
	case rest == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case rest == "" && r.Method == http.MethodPost:
		s.create(w, r)
	default:
		number, err := strconv.Atoi(strings.TrimPrefix(rest, "/"))
		if err != nil || number < 1 || number > len(s.pulls) {
			fail(w, http.StatusNotFound, "Not Found")
			return
		}
		s.one(w, r, s.pulls[number-1])
	}
}

// list is https://docs.github.com/rest/pulls/pulls#list-pull-requests: open ones by default, newest first; head is user:branch.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	state := query.Get("state")
	if state == "" {
		state = "open"
	}
	found := []map[string]any{}
	for _, p := range slices.Backward(s.pulls) {
		head := query.Get("head")
		if state != "all" && p.state != state || query.Get("base") != "" && p.base != query.Get("base") ||
			strings.Contains(head, ":") && head != s.Owner+":"+p.head {
			continue // a head without the user's name filters nothing
		}
		found = append(found, s.short(p))
	}
	if size, err := strconv.Atoi(query.Get("per_page")); err == nil {
		found = found[:min(size, len(found))]
	}
	answer(w, http.StatusOK, found)
}

// create is https://docs.github.com/rest/pulls/pulls#create-a-pull-request.
func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Title, Head, Base, Body string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	invalid := func(errors ...map[string]string) {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed", errors...)
	}
	custom := func(message string) {
		invalid(map[string]string{"resource": "PullRequest", "code": "custom", "message": message})
	}
	// https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api#validation-failed.
	for _, field := range []struct{ name, value string }{{"head", asked.Head}, {"base", asked.Base}} {
		switch {
		case field.value == "":
			invalid(map[string]string{"resource": "PullRequest", "field": field.name, "code": "missing_field"})
			return
		case s.tip(field.value) == "":
			invalid(map[string]string{"resource": "PullRequest", "field": field.name, "code": "invalid"})
			return
		}
	}
	if asked.Title == "" {
		invalid(map[string]string{"resource": "Issue", "field": "title", "code": "missing_field"})
		return
	}
	for _, p := range s.pulls {
		if p.state == "open" && p.head == asked.Head && p.base == asked.Base {
			custom("A pull request already exists for " + s.Owner + ":" + asked.Head + ".")
			return
		}
	}
	if s.ancestor(s.tip(asked.Head), s.tip(asked.Base)) {
		custom("No commits between " + asked.Base + " and " + asked.Head)
		return
	}
	p := &pull{number: len(s.pulls) + 1, title: asked.Title, body: asked.Body, head: asked.Head, base: asked.Base, state: "open", created: time.Now().UTC()}
	s.pulls = append(s.pulls, p)
	answer(w, http.StatusCreated, s.full(p))
}

// one is https://docs.github.com/rest/pulls/pulls#get-a-pull-request and #update-a-pull-request.
func (s *Server) one(w http.ResponseWriter, r *http.Request, p *pull) {
	switch r.Method {
	case http.MethodGet:
		answer(w, http.StatusOK, s.full(p))
		if looked := s.looked; looked != nil {
			go func() { // it may merge, which wants the lock
				s.looking.Lock()
				defer s.looking.Unlock()
				looked(p.number)
			}()
		}
	case http.MethodPatch:
		var asked struct{ Title, Body *string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			fail(w, http.StatusBadRequest, "Problems parsing JSON")
			return
		}
		if asked.Title != nil {
			p.title = *asked.Title
		}
		if asked.Body != nil {
			p.body = *asked.Body
		}
		p.modified = time.Now().UTC()
		answer(w, http.StatusOK, s.full(p))
	default:
		fail(w, http.StatusNotFound, "Not Found")
	}
}

// short is how a list has it: without what says whether it can be merged.
func (s *Server) short(p *pull) map[string]any {
	fields := map[string]any{
		"number": p.number, "title": p.title, "body": p.body, "state": p.state,
		"html_url": fmt.Sprintf("https://github.com/%s/%s/pull/%d", s.Owner, s.Name, p.number),
		"head":     map[string]any{"ref": p.head, "sha": s.tip(p.head), "label": s.Owner + ":" + p.head},
		"base":     map[string]any{"ref": p.base, "sha": s.tip(p.base), "label": s.Owner + ":" + p.base},
	}
	if p.merged {
		fields["merged_at"] = p.mergedAt.Format(time.RFC3339)
	}
	return fields
}

// full adds what a single one has. Whether it can be merged is worked out after the first look: until then it is null, and
// merge_commit_sha is a trial's.
func (s *Server) full(p *pull) map[string]any {
	fields := s.short(p)
	fields["merged"], fields["mergeable"], fields["mergeable_state"] = p.merged, nil, "unknown"
	fields["merge_commit_sha"] = strings.Repeat("0", 40)
	if p.merged {
		fields["merge_commit_sha"] = p.commit
	}
	if now := s.tip(p.head) + s.tip(p.base); p.state == "open" && p.seen == now {
		state := s.mergeable(p)
		fields["mergeable"], fields["mergeable_state"] = state != "dirty", state
	} else {
		p.seen = now
	}
	return fields
}
