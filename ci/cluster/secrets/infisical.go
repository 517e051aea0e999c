package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-resty/resty/v2"
	authapi "github.com/infisical/go-sdk/packages/api/auth"
	foldersapi "github.com/infisical/go-sdk/packages/api/folders"
	secretsapi "github.com/infisical/go-sdk/packages/api/secrets"

	"tazlab.net/castle/ci/base/bounded"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/retry"
	"tazlab.net/castle/ci/cluster/config"
)

// hiddenValue is what Infisical gives for a secret whose value the identity may not read.
const hiddenValue = "<hidden-by-infisical>"

// place is a folder with secrets of a cluster, and where Flux's are.
type place struct{ url, project, slug, environment, path, flux string }

// placeOf is the folder of what only castle reads and writes.
func placeOf(c *config.Cluster) place {
	i := c.Secrets.Infisical
	return place{strings.TrimSuffix(i.URL, "/"), i.Project, i.Slug, i.Environment, i.Path, i.FluxPath}
}

// in is another folder of the same environment.
func (p place) in(path string) place {
	p.path = path
	return p
}

// of is the folder that a secret belongs into.
func (p place) of(name string) place {
	if slices.Contains(flux, name) {
		return p.in(p.flux)
	}
	return p
}

func (p place) String() string {
	project := p.slug
	if project == "" {
		project = p.project
	}
	return fmt.Sprintf("Infisical (%s), project %s, environment %s, path %s", p.url, project, p.environment, p.path)
}

// where says where a secret that is needed is looked for, and how it gets there.
func (p place) where(n need) (at, fix string) { return p.of(n.name).String(), "add it there" }

// pace is how long one operation is tried.
type pace struct {
	attempt     time.Duration // one request, to the end of its answer
	first, most time.Duration // waits between tries, doubling
	tries       uint
	deadline    time.Duration // all of it
}

func paceOf(in Inputs) pace {
	p := pace{attempt: 20 * time.Second, first: 500 * time.Millisecond, most: 10 * time.Second, tries: 6, deadline: 2 * time.Minute}
	if in.pace != nil {
		p = *in.pace
	}
	if in.Deadline > 0 {
		p.deadline = in.Deadline
	}
	return p
}

// session speaks with Infisical as one machine identity. It uses the API layer of Infisical's SDK and not its client,
// which has no deadline for a request, hides the Retry-After header and waits without looking at a context.
type session struct {
	place
	*login
	pace      pace
	transport http.RoundTripper
}

// login is a machine identity and its token.
type login struct {
	clientID, clientSecret string
	name                   string // what the client id is called in the SOPS files

	mu    sync.Mutex
	token string
}

// in is the same identity in another folder.
func (s *session) in(path string) *session {
	there := *s
	there.place = s.place.in(path)
	return &there
}

// newSession is one of the identity whose client id and secret are called so among the values.
func newSession(at place, values map[string]string, id, secret string, in Inputs) *session {
	return &session{
		place: at, login: &login{clientID: values[id], clientSecret: values[secret], name: id}, pace: paceOf(in),
		transport: bounded.Transport{Next: http.DefaultTransport.(*http.Transport).Clone(), Limit: longestAnswer}, // takes proxies from the environment
	}
}

// listing is what the cluster's folders hold, as far as the identity is given it.
type listing struct {
	values map[string]string
	// own and flux are what stands in each of the two folders.
	own, flux map[string]string
	// withheld are secrets that the identity may not see or read, of those that were asked for by their names.
	withheld map[string]withheld
}

// withheld is why a secret is not given.
type withheld struct {
	text, fix string
	unseen    bool // it may not be there at all
}

// readable are the permissions that castle needs in a cluster's path to read, in the words of Infisical's roles and of its API.
const readable = `"Describe Secret" and "Read Value" (describeSecret, readValue)`

// read gives the secrets of castle's own folder and of Flux's. What was put into the former before there was the latter is taken from there
// until create has copied it.
func (s *session) read(ctx context.Context, wanted needs) (*listing, error) {
	ofFlux := func(n need) bool { return slices.Contains(flux, n.name) }
	own, err := s.folder(ctx, slices.DeleteFunc(slices.Clone(wanted), ofFlux))
	if err != nil {
		return nil, err
	}
	theirs, err := s.in(s.flux).folder(ctx, slices.DeleteFunc(slices.Clone(wanted), func(n need) bool { return !ofFlux(n) }))
	if err != nil {
		return nil, err
	}
	both := &listing{values: maps.Clone(own.values), own: own.values, flux: theirs.values, withheld: own.withheld}
	for _, name := range flux {
		if value, has := theirs.values[name]; has {
			both.values[name] = value
		}
	}
	maps.Copy(both.withheld, theirs.withheld)
	return both, nil
}

// folder gives the secrets of one folder with one list. Infisical leaves out of it, without a word, what the identity may not see, and
// refuses all of it for one value that may not be read, without saying which: then each wanted secret that was not given is asked for by
// its name. What is not wanted may stay hidden.
func (s *session) folder(ctx context.Context, wanted needs) (*listing, error) {
	values, err := s.list(ctx)
	refused, is := errors.AsType[*InfisicalError](err)
	hides := is && refused.valueRefused()
	if err != nil && !hides {
		return nil, err
	}
	l := &listing{values: map[string]string{}, withheld: map[string]withheld{}}
	for name, value := range values {
		if value != hiddenValue {
			l.values[name] = value
		}
	}
	hides = hides || len(l.values) < len(values)
	for _, n := range wanted {
		if _, has := l.values[n.name]; has || n.source != SourceInfisical || n.optional && !hides {
			continue // one that may be missing is not asked for where nothing is known to be hidden
		}
		value, has, why, err := s.get(ctx, n.name)
		switch {
		case err != nil:
			return nil, err
		case has:
			l.values[n.name] = value
		case why != nil && (!why.unseen || !n.optional || n.name == TalosSecrets):
			l.withheld[n.name] = *why
		}
	}
	return l, nil
}

// maySee tells whether this identity is told that a secret is or is not there. Infisical looks for the folder, then at the permission, then for the
// secret (see get), and says in words which of these is missing.
func (s *session) maySee(ctx context.Context, name string) (bool, error) {
	err := s.retrieve(ctx, name, new(string))
	refused, is := errors.AsType[*InfisicalError](err)
	switch {
	case is && refused.Status == http.StatusNotFound:
		return strings.HasPrefix(refused.Message, "Secret "), nil
	case is && refused.Status == http.StatusForbidden && !refused.tokenRefused():
		return !refused.withheld().unseen, nil
	}
	return err == nil, err
}

// get reads one secret. Where it is not there, or is not given to this identity, there is no value; why is nil in the first case.
func (s *session) get(ctx context.Context, name string) (value string, has bool, why *withheld, err error) {
	err = s.retrieve(ctx, name, &value)
	var refused *InfisicalError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return "", false, nil, nil
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden && !refused.tokenRefused():
		return "", false, refused.withheld(), nil
	case err == nil && value == hiddenValue:
		return "", false, (&InfisicalError{kind: kindValueRefused, identity: s.name}).withheld(), nil
	}
	return value, err == nil, nil, err
}

func (s *session) retrieve(ctx context.Context, name string, value *string) error {
	return s.authenticated(ctx, operation{doing: "read " + name}, func(client *resty.Client) error {
		answer, err := secretsapi.CallRetrieveSecretV3(nil, client, secretsapi.RetrieveSecretV3RawRequest{
			SecretKey: name, ProjectID: s.project, Environment: s.environment, SecretPath: s.path, Type: "shared", ExpandSecretReferences: true, IncludeImports: true,
		})
		*value = answer.Secret.SecretValue
		return err
	})
}

// list reads all secrets of the cluster's path.
func (s *session) list(ctx context.Context) (map[string]string, error) {
	values := map[string]string{}
	err := s.authenticated(ctx, operation{doing: "read the secrets"}, func(client *resty.Client) error {
		answer, err := secretsapi.CallListSecretsV3(nil, client, secretsapi.ListSecretsV3RawRequest{
			ProjectID: s.project, Environment: s.environment, SecretPath: s.path, ExpandSecretReferences: true, IncludeImports: true,
		})
		if err != nil {
			return err
		}
		clear(values)
		for i := range answer.Imports { // the last import wins, and the folder's own secrets over all imports
			for _, found := range answer.Imports[i].Secrets {
				values[found.SecretKey] = found.SecretValue
			}
		}
		for _, found := range answer.Secrets {
			values[found.SecretKey] = found.SecretValue
		}
		return nil
	})
	return values, err
}

// makeFolder makes the folder and those above it; one that is there stays. Source: Infisical 00e59be,
// backend/src/services/secret-folder/secret-folder-service.ts (createFolder).
func (s *session) makeFolder(ctx context.Context) error {
	parent, name := path.Split(s.path)
	return s.authenticated(ctx, operation{doing: "make the folder", permission: folders}, func(client *resty.Client) error {
		_, err := foldersapi.CallCreateFolderV1(client, foldersapi.CreateFolderV1Request{
			ProjectID: s.project, Environment: s.environment, Name: name, Path: path.Clean(parent),
		})
		return err
	})
}

// create makes a secret. One that is there already stays as it is: made is false then, also where it is there because the answer
// to an earlier try was lost.
func (s *session) create(ctx context.Context, name, value string) (made bool, err error) {
	to := operation{"keep " + name, "create"}
	written := ""
	err = s.authenticated(ctx, to, func(client *resty.Client) error {
		answer, err := secretsapi.CallCreateSecretV3(client, secretsapi.CreateSecretV3RawRequest{
			SecretKey: name, ProjectID: s.project, Environment: s.environment, SecretPath: s.path, Type: "shared", SecretValue: value,
		})
		written = answer.Secret.SecretKey
		return err
	})
	var refused *InfisicalError
	if errors.As(err, &refused) && refused.alreadyExists() {
		return false, nil
	}
	return err == nil, s.written(to, name, written, err)
}

// update gives a secret of the cluster's own path another value. found is false where there is none.
func (s *session) update(ctx context.Context, name, value string) (found bool, err error) {
	to := operation{"keep " + name, "edit"}
	written := ""
	err = s.authenticated(ctx, to, func(client *resty.Client) error {
		answer, err := secretsapi.CallUpdateSecretV3(client, secretsapi.UpdateSecretV3RawRequest{
			SecretKey: name, ProjectID: s.project, Environment: s.environment, SecretPath: s.path, Type: "shared", NewSecretValue: value,
		})
		written = answer.Secret.SecretKey
		return err
	})
	var refused *InfisicalError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, s.written(to, name, written, err)
}

// written tells a change that was made from one that only was asked for.
func (s *session) written(to operation, name, written string, err error) error {
	if err == nil && written != name {
		return &InfisicalError{Place: s.String(), operation: to, Status: http.StatusOK, Message: "the change waits for an approval", waits: true, identity: s.name}
	}
	return err
}

// put gives a secret a value, whether it is there or not. there is what was seen of it; since then it may have been made or removed,
// and what a look at an import has shown is not there to be changed.
func (s *session) put(ctx context.Context, name, value string, there bool) (created bool, err error) {
	for range 3 {
		done := false
		if there {
			done, err = s.update(ctx, name, value)
		} else {
			done, err = s.create(ctx, name, value)
		}
		if done || err != nil {
			return !there, err
		}
		there = !there
	}
	return false, &InfisicalError{Place: s.String(), operation: operation{doing: "keep " + name},
		Message: "the folder is not there, or somebody makes and removes the secret at the same time"}
}

// operation is what is asked of Infisical.
type operation struct {
	doing      string // "log in", "read the secrets", "keep TALOS_SECRETS"
	permission string // what an identity must be allowed to do with secrets, "create" or "edit", or folders; empty: to read secrets
}

// authenticated runs a request with a token, and once more with a new one where Infisical no longer takes the old.
func (s *session) authenticated(ctx context.Context, to operation, request func(*resty.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.pace.deadline)
	defer cancel()
	for renewed := false; ; renewed = true {
		token, err := s.loggedIn(ctx)
		if err != nil {
			return err
		}
		err = s.try(ctx, to, token, request)
		var refused *InfisicalError
		if renewed || !errors.As(err, &refused) || !refused.tokenRefused() {
			return err
		}
		s.forget(token)
	}
}

func (s *session) forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.token = ""
	}
}

// loggedIn gives the token of this identity, a new one where there is none.
func (s *session) loggedIn(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" {
		return s.token, nil
	}
	err := s.try(ctx, operation{doing: "log in"}, "", func(client *resty.Client) error {
		answer, err := authapi.CallUniversalAuthLogin(client, authapi.UniversalAuthLoginRequest{ClientID: s.clientID, ClientSecret: s.clientSecret})
		if err == nil && answer.AccessToken == "" {
			return errNotInfisical
		}
		redact.Add(answer.AccessToken)
		s.token = answer.AccessToken
		return err
	})
	return s.token, err
}

var errNotInfisical = errors.New("the answer is not one of Infisical's: check secrets.infisical.url")

// try runs a request until it succeeds, cannot succeed, or the deadline is over.
func (s *session) try(ctx context.Context, to operation, token string, request func(*resty.Client) error) error {
	started := time.Now()
	var last *InfisicalError
	tries := 0
	policy := retry.Policy{Doing: s.place.String(), Pauses: retry.Growing(s.pace.first, s.pace.most), Tries: s.pace.tries, For: s.pace.deadline,
		Seen: func(error) string { return last.what() }}
	err := policy.Do(ctx, func() error {
		tries++
		once := &attempt{next: s.transport}
		var err error
		if once.ctx, err = ctx, ctx.Err(); err == nil {
			limited, cancel := context.WithTimeout(ctx, s.pace.attempt)
			defer cancel()
			once.ctx = limited
			err = request(once.client(s.url, token))
		}
		if err == nil {
			return nil
		}
		failed := once.failure(ctx, err)
		if last == nil || ctx.Err() == nil {
			last = failed // the end of the deadline says less than what was seen before it
		}
		last.Place, last.identity, last.operation, last.Message = s.String(), s.name, to, redact.Text(last.Message)
		switch {
		case !failed.helps():
			return retry.Permanent(failed)
		case failed.RetryAfter > 0:
			return retry.After(failed, failed.RetryAfter)
		}
		return failed
	})
	if err == nil {
		return nil
	}
	if last == nil {
		last = &InfisicalError{Place: s.String(), identity: s.name, operation: to}
	}
	last.Tries, last.Elapsed, last.ended = tries, time.Since(started), ctx.Err()
	return last
}

// attempt is one request: it binds the SDK's call to a context and keeps what the SDK does not tell.
type attempt struct {
	next   http.RoundTripper
	ctx    context.Context
	err    error
	status int
	kind   string
	text   string
	wait   time.Duration
}

func (a *attempt) client(url, token string) *resty.Client {
	client := resty.NewWithClient(&http.Client{Transport: a, CheckRedirect: func(to *http.Request, _ []*http.Request) error {
		return fmt.Errorf("redirected to %s://%s: set that as secrets.infisical.url", to.URL.Scheme, to.URL.Host)
	}})
	client.SetBaseURL(url+"/api").SetHeader("User-Agent", "castle").SetDisableWarn(true).SetLogger(silence{})
	if token != "" {
		client.SetAuthToken(token)
	}
	return client
}

// longestAnswer is what is read of a list of secrets, in bytes.
const longestAnswer = 16 << 20

// maxRefusal is how much of an answer that is no success is read.
const maxRefusal = 64 << 10

// RoundTrip implements http.RoundTripper.
func (a *attempt) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request.WithContext(a.ctx))
	if err != nil {
		a.err = err
		return nil, err
	}
	a.status = response.StatusCode
	if response.StatusCode < http.StatusBadRequest {
		response.Body = &watched{response.Body, a}
		return response, nil
	}
	a.wait, _ = retry.ParseAfter(response.Header.Get("Retry-After"), time.Now())
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	response.Body.Close()
	if err != nil {
		a.err = err
		return nil, err
	}
	var refusal struct {
		Kind    string          `json:"error"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(body, &refusal) == nil {
		a.kind = refusal.Kind
		if json.Unmarshal(refusal.Message, &a.text) != nil {
			a.text = "" // the list of what a validation found, which may quote the request
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// watched is a body that tells when it is cut.
type watched struct {
	io.ReadCloser
	attempt *attempt
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		w.attempt.err = err
	}
	return n, err
}

func (a *attempt) failure(ctx context.Context, err error) *InfisicalError {
	switch {
	case a.err != nil && ctx.Err() == nil && errors.Is(a.ctx.Err(), context.DeadlineExceeded):
		return &InfisicalError{Message: "no answer within the time for one request", cause: context.DeadlineExceeded, retry: true}
	case a.err != nil:
		return &InfisicalError{Message: a.err.Error(), cause: a.err, retry: ctx.Err() == nil}
	case a.status >= http.StatusBadRequest:
		return &InfisicalError{Status: a.status, kind: a.kind, Message: a.text, RetryAfter: a.wait,
			retry: a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout || a.status >= http.StatusInternalServerError}
	default: // it was redirected, or not understood
		return &InfisicalError{Message: err.Error(), cause: err}
	}
}

// silence drops what resty would log.
type silence struct{}

func (silence) Errorf(string, ...any) {}
func (silence) Warnf(string, ...any)  {}
func (silence) Debugf(string, ...any) {}
