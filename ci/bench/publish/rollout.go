package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tazlab.net/castle/ci/publish/report"
)

// settings is the castle.yaml of the repository that is published: its image goes into the sandbox's own registry.
const settings = `sites:
  blog:
    path: blog
    image: tazzo/tazlab.net
    manifest: ` + manifestPath + `
`

// rolloutBar is how long Flux and the cluster may take from the push to the available pod, as the median.
const rolloutBar = 5 * time.Second

// measureRollouts publishes changes of this repository's blog into the sandbox, which is created where it is not there yet,
// and tells the times from each push until the pods run that very image. The publishes themselves are not in them.
func measureRollouts(ctx context.Context, o options) error {
	w, err := newWorkshop(ctx, o, ownBlog(o))
	if err != nil {
		return err
	}
	took, err := w.rollouts(ctx)
	if err = errors.Join(err, w.close()); err != nil {
		return err
	}
	fmt.Println("\n| from push to available pod, in the sandbox | median | slowest | bar |\n|---|---:|---:|---:|")
	fmt.Printf("| %d publishes with --wait | %.1f s | %.1f s | %.0f s |\n", len(took), slices.Sorted(slices.Values(took))[len(took)/2].Seconds(), slices.Max(took).Seconds(), rolloutBar.Seconds())
	return nil
}

func (w *workshop) rollouts(ctx context.Context) ([]time.Duration, error) {
	if err := os.WriteFile(filepath.Join(w.source(), "castle.yaml"), []byte(settings), 0o644); err != nil {
		return nil, err
	}
	if err := w.run(ctx, w.root, nil, "dagger", "call", "--quiet", "create", "--cluster=sandbox"); err != nil {
		return nil, err
	}
	var all []time.Duration
	for run := range w.runs {
		if err := errors.Join(editAbout(w.blog(), run), w.commit(ctx, "Change a comma")); err != nil {
			return nil, err
		}
		output, err := w.output(ctx, w.root, nil, "dagger", "call", "--quiet", "publish-blog", "--source="+w.source(), "--cluster=sandbox", "--wait", "--format=JSON")
		if err != nil {
			return nil, err
		}
		var result report.Result
		if err := json.Unmarshal(output, &result); err != nil {
			return nil, fmt.Errorf("publish-blog --format=JSON printed no result: %w\n%s", err, output)
		}
		if result.Rollout == nil || !result.Rollout.Available || !result.Changed {
			return nil, fmt.Errorf("publish-blog --wait did not roll anything out: %s", bytes.TrimSpace(output))
		}
		took := time.Duration(result.Rollout.Seconds * float64(time.Second))
		all = append(all, took)
		fmt.Fprintf(os.Stderr, "push to available pod: %s\n", took.Round(10*time.Millisecond))
	}
	return all, nil
}
