// Package pullrequest delivers a change of the GitOps repository as a pull request of GitHub, for those whose branch takes
// no pushes: castle pushes a branch of its own, opens one pull request for it or goes on with the one that is open, and waits,
// where asked to, until somebody has merged it. It never approves nor merges anything itself.
package pullrequest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v74/github"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/plainhttp"
	"tazlab.net/castle/ci/base/redact"
)

// requestTimeout is for one request to GitHub.
const requestTimeout = 30 * time.Second

// Repository is one of GitHub's.
type Repository struct {
	client      *github.Client
	owner, name string
	web         string // its address as a person knows it, without credentials
	secrets     *redact.Redactor
}

// Open reads a repository's address, which may be any that git takes, and the API's, which may be empty for github.com. It asks
// nothing of GitHub yet; the error names all that is wrong.
func Open(address, api, token string) (*Repository, error) {
	token = strings.TrimSpace(token)
	host, path, err := split(address)
	if err != nil {
		return nil, err
	}
	shown := redact.URL(address)
	var problems []error
	parts := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		problems = append(problems, fmt.Errorf("%s is no repository of GitHub, which is named as in https://github.com/OWNER/NAME: "+
			"leave --pull-request out, and open one by hand from --push-branch", shown))
	}
	var base *url.URL
	switch onGitHub := host == "github.com" || host == "www.github.com" || host == "ssh.github.com"; {
	case api != "":
		if base, err = parseAPI(api); err != nil {
			problems = append(problems, err)
		}
	case !onGitHub:
		problems = append(problems, fmt.Errorf("%s is not on github.com, and it is not known where its API is: name it with --github-api "+
			"(https://HOST/api/v3/ for GitHub Enterprise Server), or leave --pull-request out where it is no GitHub", shown))
	}
	switch {
	case token == "":
		problems = append(problems, errors.New("a pull request is opened with a token, also where git itself goes by ssh: give it with --git-token; "+
			"on GitHub it needs contents and pull requests, read and write"))
	case strings.ContainsAny(token, "\r\n\x00"):
		problems = append(problems, errors.New("the Git token holds a line break; give it as one line"))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	client := github.NewClient(&http.Client{
		Timeout: requestTimeout,
		// The token goes with every request that the client makes, so it must make none to another host.
		CheckRedirect: plainhttp.SameServer,
	}).WithAuthToken(token)
	// The waits that GitHub asks for are kept here, with a deadline; the client's own memory of them would only answer in GitHub's place.
	client.DisableRateLimitCheck = true
	if base != nil {
		client.BaseURL = base
	}
	return &Repository{
		client: client, owner: parts[0], name: parts[1], web: shown,
		secrets: redact.New(token),
	}, nil
}

// split takes the host and path out of an address: a URL, or user@host:path.
func split(address string) (host, path string, err error) {
	if strings.Contains(address, "://") {
		parsed, err := url.Parse(address)
		if err != nil {
			return "", "", fmt.Errorf("%q is no valid URL of a repository", redact.URL(address))
		}
		return parsed.Hostname(), parsed.Path, nil
	}
	host, path, _ = strings.Cut(address, ":")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return host, path, nil
}

// parseAPI refuses what would show the token on the way or in a log.
func parseAPI(api string) (*url.URL, error) {
	parsed, err := url.Parse(api)
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, fmt.Errorf("--github-api %q is no URL of an API, such as https://github.example.org/api/v3/", redact.URL(api))
	}
	if git.HasPassword(api) || parsed.User != nil {
		return nil, fmt.Errorf("--github-api %s has credentials in it; remove them, and give the token with --git-token", redact.URL(api))
	}
	if parsed.Scheme != "https" && parsed.Scheme != "http" || !plainhttp.Allowed(parsed, nil) {
		return nil, fmt.Errorf("--github-api %s: the token would go over the network in clear; give an https URL", redact.URL(api))
	}
	if !strings.HasSuffix(parsed.Path, "/") {
		parsed.Path += "/"
	}
	return parsed, nil
}
