package imagepush

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/redact"
)

const (
	defaultTimeout = 15 * time.Minute
	defaultAttempt = 2 * time.Minute
	defaultPause   = 500 * time.Millisecond
	defaultRetry   = 4 * time.Minute
	jobs           = 8 // blobs asked for or uploaded at once: most of an image's are there already, and cost a round trip each
)

// Access says how to reach a registry. The zero value reaches a public one without credentials.
type Access struct {
	Username string
	Password string // or a token; both empty: anonymous

	// PlainHTTP names the registries ("registry:5000") that speak HTTP instead of HTTPS. localhost, 127.0.0.1 and ::1 need no
	// entry; *.local and private addresses need one where they ask for credentials.
	PlainHTTP []string

	Transport http.RoundTripper // nil: one of its own, with http.ProxyFromEnvironment
	Timeout   time.Duration     // of the whole call; 0: 15 minutes and RetryFor
	Attempt   time.Duration     // of one attempt at one step, beside the time that its bytes take; 0: 2 minutes
	Pause     time.Duration     // before the first repetition, doubled for each further one; 0: half a second
	Tries     int               // attempts at each step; 0: as many as RetryFor has time for
	RetryFor  time.Duration     // no attempt at a step begins so long after its first failure; 0: 4 minutes

}

// Briefly is an access for a dry run: it pushes nothing that a wait could save, so it tells soon that a registry does not answer.
func (a Access) Briefly() Access {
	a.Tries, a.Attempt = 2, 5*time.Second
	return a
}

// session is an Access bound to one repository.
type session struct {
	Access
	repository name.Repository
	auth       authn.Authenticator
	puller     *remote.Puller
	pusher     *remote.Pusher
	redactor   *redact.Redactor
	done       func() // drops idle connections
	known      Known  // nil: nobody is asked

	mu       sync.Mutex
	attempts int // the most that one step took
}

func (a Access) open(repository name.Repository) (*session, error) {
	if a.RetryFor == 0 {
		a.RetryFor = defaultRetry
	}
	if a.Timeout == 0 {
		a.Timeout = defaultTimeout + a.RetryFor
	}
	if a.Attempt == 0 {
		a.Attempt = defaultAttempt
	}
	if a.Pause == 0 {
		a.Pause = defaultPause
	}
	s := &session{Access: a, repository: repository, auth: authn.Anonymous, done: func() {}, attempts: 1}
	if s.Transport == nil {
		own := remote.DefaultTransport.(*http.Transport).Clone()
		s.Transport, s.done = own, own.CloseIdleConnections
	}
	s.Transport = &encrypted{s.Transport, a.PlainHTTP}
	if a.Password != "" {
		s.redactor = redact.New(a.Password, a.Username+":"+a.Password)
	}
	if a.Username != "" || a.Password != "" {
		s.auth = authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password})
	}
	options := []remote.Option{
		remote.WithAuth(s.auth), remote.WithTransport(&throttle{s.Transport}), remote.WithUserAgent("castle"), remote.WithJobs(jobs),
		// The library's own repetitions are turned off: they know no Retry-After, and sleep on when the context ends.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryStatusCodes(),
		remote.WithRetryPredicate(func(error) bool { return false }),
	}
	var err error
	if s.puller, err = remote.NewPuller(options...); err != nil {
		return nil, err
	}
	s.pusher, err = remote.NewPusher(options...)
	return s, err
}

// parse reads a reference as `docker pull` does: "tazzo/tazlab.net:x" is on Docker Hub.
func (a Access) parse(reference string) (name.Reference, error) {
	ref, err := name.ParseReference(reference, name.WeakValidation)
	if err == nil && slices.Contains(a.PlainHTTP, ref.Context().RegistryStr()) {
		ref, err = name.ParseReference(reference, name.WeakValidation, name.Insecure)
	}
	if err != nil {
		return nil, fmt.Errorf("image reference %q is not of the form [registry/]repository:tag: %w", reference, err)
	}
	return ref, nil
}

// parseTag is parse for what is pushed: the tag is named, and not the one that everybody moves.
func (a Access) parseTag(reference string) (name.Tag, error) {
	ref, err := a.parse(reference)
	if err != nil {
		return name.Tag{}, err
	}
	tag, ok := ref.(name.Tag)
	named := strings.HasSuffix(reference, ":"+ref.Identifier())
	if !ok || !named || tag.TagStr() == "latest" {
		return name.Tag{}, fmt.Errorf("image reference %q: name a tag of its own for each content, such as blog-<commit>; "+
			"latest, no tag and a digest are refused, because what runs could not be told or rolled back", reference)
	}
	return tag, nil
}
