package kube

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"tazlab.net/castle/ci/base/retry"
)

func TestAQuestionIsPutAgainUntilTheAPIAnswers(t *testing.T) {
	client := &Client{config: &rest.Config{Host: "https://192.0.2.1:6443"}}
	missing := apierrors.NewNotFound(Nodes.GroupResource(), "n1")
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"at once":               {[]error{nil}, nil},
		"after a moment":        {[]error{errors.New("connection refused"), apierrors.NewInternalError(errors.New("etcd")), nil}, nil},
		"it is not there":       {[]error{missing}, missing},
		"it is not there, late": {[]error{apierrors.NewTooManyRequests("busy", 1), missing}, missing},
	} {
		tries := 0
		var said strings.Builder
		err := client.Ask(retry.To(t.Context(), &said), func(context.Context) error {
			tries++
			return c.answers[tries-1]
		})
		if !errors.Is(err, c.want) || tries != len(c.answers) {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
		const first = "a request to the API at https://192.0.2.1:6443 failed at attempt 1: "
		if lines := strings.Count(said.String(), "\n"); lines != min(1, tries-1) || lines == 1 && !strings.HasPrefix(said.String(), first) {
			t.Errorf("%s: it said %q", name, said.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.Ask(ctx, func(context.Context) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
