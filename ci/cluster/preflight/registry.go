package preflight

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// images asks the registries that publishing pushes to; the cluster itself does without.
func images(ctx context.Context, s *inspection) []finding {
	asked := s.asked
	if len(asked.Images) == 0 {
		return ok("no castle.yaml here names an image")
	}
	refused := make([]error, len(asked.Images))
	var wait sync.WaitGroup
	for i, image := range asked.Images {
		wait.Go(func() { refused[i] = asked.MayPush(ctx, image) })
	}
	wait.Wait()
	var found []finding
	for i, err := range refused {
		if err != nil {
			found = append(found, finding{Failed, err.Error(),
				fmt.Sprintf("check %s in castle.yaml, registry.username there, and --registry-password; publish-blog needs it, the cluster does not", asked.Images[i])})
		}
	}
	switch {
	case found != nil:
		return found
	case asked.Anonymous:
		return ok("the registry of %s answers; who may push is told where --registry-password is given", strings.Join(asked.Images, ", "))
	}
	return ok("--registry-password may push to %s", strings.Join(asked.Images, ", "))
}
