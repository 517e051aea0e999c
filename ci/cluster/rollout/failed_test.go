package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/test/fluxtest"
	"tazlab.net/castle/ci/test/waittest"
)

func TestOnlyADeploymentThatGotTheImageAndIsNotAvailableHasFailed(t *testing.T) {
	for name, image := range map[string]string{"the image, and no pods": "registry/blog:new", "not the image": "registry/blog:old"} {
		t.Run(name, func(t *testing.T) {
			server, client := settledFlux(t, "registry/blog:old")
			wait := waittest.Begin(t, func(ctx context.Context, saw func(string)) error {
				_, err := Wait(ctx, client, ofNew, gates.Options{Timeout: 4 * time.Second, Events: func(event gates.Event) {
					if event.Phase == gates.PhaseWaiting {
						saw(event.Seen)
					}
				}})
				return err
			})
			server.Asked(client, false)
			server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
			server.Asked(client, true)
			server.PutBlog(image, "not yet")
			err := wait.Fails()
			if _, failed := errors.AsType[*FailedError](err); failed != (image == ofNew.Image) {
				t.Errorf("failed: %v, %v", failed, err)
			}
		})
	}
	t.Run("a commit that Flux has not fetched", func(t *testing.T) {
		server, client := settledFlux(t, "registry/blog:old")
		wait := waittest.Begin(t, func(ctx context.Context, _ func(string)) error {
			_, err := Wait(ctx, client, ofNew, gates.Options{Timeout: 2 * time.Second, Events: func(gates.Event) {}})
			return err
		})
		server.Asked(client, false)
		if _, failed := errors.AsType[*FailedError](wait.Fails()); failed {
			t.Error("it counts as failed")
		}
	})
}
