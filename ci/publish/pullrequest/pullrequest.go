package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v74/github"
)

// Proposal is a pull request as it shall be.
type Proposal struct {
	// Head is the branch that was pushed, and Base the one it is to be merged into.
	Head, Base  string
	Title, Body string
}

// Opened is a pull request that is open.
type Opened struct {
	Number int
	URL    string
	// Reused says that it was open before.
	Reused bool
}

// Check makes sure that the repository is there and that the token may see its pull requests, before anything is changed.
// Whether it may open one, only opening tells.
func (r *Repository) Check(ctx context.Context) error {
	_, err := ask(ctx, r, "a look at the pull requests", func(ctx context.Context) ([]*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.List(ctx, r.owner, r.name, &github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: 1}})
	})
	return err
}

// Propose opens a pull request, or goes on with the one that is open from the same branch into the same one: GitHub has at
// most one of these. Where its title or text says something else by now, it is edited.
func (r *Repository) Propose(ctx context.Context, p Proposal) (Opened, error) {
	found, err := r.find(ctx, p)
	if err != nil {
		return Opened{}, err
	}
	if found == nil {
		made, err := r.create(ctx, p)
		if err == nil {
			return Opened{Number: made.GetNumber(), URL: made.GetHTMLURL()}, nil
		}
		// Two calls at once, or an answer that was lost on its way: then it is there now.
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "already exists") {
			return Opened{}, err
		}
		again, look := r.find(ctx, p)
		if look != nil || again == nil {
			return Opened{}, errors.Join(err, look)
		}
		found = again
	}
	opened := Opened{Number: found.GetNumber(), URL: found.GetHTMLURL(), Reused: true}
	if found.GetTitle() == p.Title && unix(found.GetBody()) == unix(p.Body) {
		return opened, nil
	}
	_, err = ask(ctx, r, fmt.Sprintf("editing pull request #%d", opened.Number), func(ctx context.Context) (*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.Edit(ctx, r.owner, r.name, opened.Number, &github.PullRequest{Title: &p.Title, Body: &p.Body})
	})
	return opened, err
}

func unix(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// find looks for the open pull request; nil: there is none.
func (r *Repository) find(ctx context.Context, p Proposal) (*github.PullRequest, error) {
	list, err := ask(ctx, r, "looking for an open pull request", func(ctx context.Context) ([]*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.List(ctx, r.owner, r.name, &github.PullRequestListOptions{State: "open", Head: r.owner + ":" + p.Head, Base: p.Base})
	})
	if err != nil {
		return nil, err
	}
	for _, found := range list { // a filter that GitHub does not understand is left out of account
		if found.GetHead().GetRef() == p.Head && found.GetBase().GetRef() == p.Base {
			return found, nil
		}
	}
	return nil, nil
}

func (r *Repository) create(ctx context.Context, p Proposal) (*github.PullRequest, error) {
	return ask(ctx, r, "opening a pull request", func(ctx context.Context) (*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.Create(ctx, r.owner, r.name, &github.NewPullRequest{Title: &p.Title, Head: &p.Head, Base: &p.Base, Body: &p.Body})
	})
}

// Wait says how a merge is waited for.
type Wait struct {
	// For is how long.
	For time.Duration
	// Every is the pause between two looks; zero means 5 s. GitHub's API cannot be watched.
	Every time.Duration
	// Renew is called when GitHub says that the branch must be brought up to date: it conflicts with the base, or a rule wants
	// it to hold the newest commit. Done says that the base has what was proposed, and there is nothing to merge any more.
	Renew func(ctx context.Context) (done bool, err error)
}

// Merged is where the base got what was proposed.
type Merged struct {
	// Commit is the base's; empty where it had the change from somebody else.
	Commit string
	At     time.Time
}

// Wait waits until the pull request is merged. Errors are ErrClosed, ErrNotMerged, and those of Renew and of the API.
func (r *Repository) Wait(ctx context.Context, o Opened, wait Wait) (Merged, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, wait.For)
	defer cancel()
	ticker := time.NewTicker(cmp.Or(wait.Every, 5*time.Second))
	defer ticker.Stop()
	state := ""
	for {
		pr, err := ask(ctx, r, fmt.Sprintf("a look at pull request #%d", o.Number), func(ctx context.Context) (*github.PullRequest, *github.Response, error) {
			return r.client.PullRequests.Get(ctx, r.owner, r.name, o.Number)
		})
		switch {
		case err != nil && ctx.Err() != nil && caller.Err() == nil:
			return Merged{}, r.notMerged(o, wait.For, state)
		case err != nil:
			return Merged{}, err
		case pr.GetMerged():
			return Merged{Commit: pr.GetMergeCommitSHA(), At: pr.GetMergedAt().Time}, nil
		case pr.GetState() == "closed":
			return Merged{}, r.failed("waiting for the merge", fmt.Errorf("pull request #%d was %w: %s; the branch %s does not have the image; "+
				"run this again to propose it once more", o.Number, ErrClosed, o.URL, pr.GetBase().GetRef()))
		}
		if pr.Mergeable != nil || state == "" { // null: GitHub has not worked it out yet
			state = pr.GetMergeableState()
		}
		if wait.Renew != nil && (state == "dirty" || state == "behind") {
			done, err := wait.Renew(ctx)
			if err != nil {
				return Merged{}, err
			}
			if done {
				return Merged{}, nil
			}
		}
		select {
		case <-ctx.Done():
			if err := caller.Err(); err != nil {
				return Merged{}, err
			}
			return Merged{}, r.notMerged(o, wait.For, state)
		case <-ticker.C:
		}
	}
}

func (r *Repository) notMerged(o Opened, waited time.Duration, state string) error {
	return r.failed("waiting for the merge", fmt.Errorf("pull request #%d was %w, %s: %s; it stays open: %s; run this again to go on waiting, "+
		"and give --merge-timeout where it takes longer", o.Number, ErrNotMerged, waited, cmp.Or(states[state], state), o.URL))
}

// states are the values of mergeable_state, which the REST pages name nowhere; these are those of MergeStateStatus on
// https://docs.github.com/graphql/reference/enums#mergestatestatus, in lower case.
var states = map[string]string{
	"behind":    "its branch must be brought up to date first",
	"blocked":   "a review or a check that the branch's rules want is missing",
	"clean":     "it can be merged, and nobody has done so",
	"dirty":     "it conflicts with the branch",
	"draft":     "it is a draft",
	"has_hooks": "it can be merged, and nobody has done so",
	"unstable":  "it can be merged, though a check fails or goes on, and nobody has done so",
	"unknown":   "GitHub has not worked out whether it can be merged",
	"":          "GitHub has not said whether it can be merged",
}
