package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
)

const (
	askEvery = 500 * time.Millisecond
	// askFor bounds one question with all its tries: a virtual IP that moves is away for some seconds.
	askFor = 30 * time.Second
)

// Ask makes one request, and again where the API gives no answer: its server restarts, or the virtual IP moves. What it does answer
// is the result; an object that is not there is such an answer.
func (c *Client) Ask(ctx context.Context, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var last error
	err := c.Poll(askEvery).Until(bounded, func(ctx context.Context) Answer {
		last = request(ctx)
		if last != nil && answers(last) {
			return Answer{Fatal: last}
		}
		return Answer{OK: last == nil, Err: last}
	}, func(string) {})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && last != nil {
		return fmt.Errorf("the API at %s gives no answer: %w", c.config.Host, Brief(last))
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
