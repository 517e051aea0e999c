package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"tazlab.net/castle/ci/base/retry"
)

const (
	askEvery = 500 * time.Millisecond
	// sayEvery is how long nothing is said of an API that gives no answer.
	sayEvery = 10 * time.Second
	// askFor bounds one question with all its tries: a virtual IP that moves is away for some seconds.
	askFor = 30 * time.Second
	// AwayAtMost is for how long the API may be away while layers are applied: an API server is back within seconds, or half a minute where it
	// waits for its watches first, and another holder of the virtual IP a minute after its holder's power was cut.
	AwayAtMost = 90 * time.Second
)

// Ask makes one request, and again where the API gives no answer: its server restarts, or the virtual IP moves. What it does answer
// is the result; an object that is not there is such an answer. Who waits is told, at the first failure and now and then.
func (c *Client) Ask(ctx context.Context, request func(context.Context) error) error {
	return c.AskFor(ctx, askFor, request)
}

// AskFor is Ask with another bound.
func (c *Client) AskFor(ctx context.Context, limit time.Duration, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	attempts := 0
	until, _ := bounded.Deadline()
	var said time.Time
	err := c.Poll(askEvery).Until(bounded, func(ctx context.Context) Answer {
		err := request(ctx)
		if err != nil && answers(err) {
			return Answer{Fatal: err}
		}
		if bounded.Err() == nil { // the end of the wait is not why there was no answer
			last = err
			if attempts++; err != nil && time.Since(said) >= sayEvery {
				said = time.Now()
				retry.Say(ctx, retry.Notice{
					Doing: "a request to the API at " + c.config.Host, Attempts: attempts, Seen: Brief(err).Error(), Pause: askEvery, Until: until,
				})
			}
		}
		return Answer{OK: err == nil, Err: err}
	}, func(string) {})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return fmt.Errorf("the API at %s does not answer: %w", c.config.Host, Brief(last))
	}
	return err
}

// Ready asks the API server once whether it is ready.
func (c *Client) Ready(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return err
	}
	return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// answers tells an error that the API means from one that passes.
func answers(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTimeout(err)
}
