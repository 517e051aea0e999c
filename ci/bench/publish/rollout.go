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
	"strings"
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

const (
	// rolloutBar is how long Flux and the cluster may take from the push to the available pod, at the slowest.
	rolloutBar = 2 * time.Second
	// rolloutCount is how many publishes are measured.
	rolloutCount = 20
)

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
	fmt.Printf("| %d publishes with --wait | %.2f s | %.2f s | %.0f s |\n", len(took), slices.Sorted(slices.Values(took))[len(took)/2].Seconds(), slices.Max(took).Seconds(), rolloutBar.Seconds())
	return nil
}

// rollouts are the times of publishes one after the other. All are made in one session, in which the sandbox's machines stay on: the first
// call has put them on, and is not among them, since Flux's controllers begin then.
func (w *workshop) rollouts(ctx context.Context) ([]time.Duration, error) {
	if err := os.WriteFile(filepath.Join(w.source(), "castle.yaml"), []byte(settings), 0o644); err != nil {
		return nil, err
	}
	if err := w.run(ctx, w.root, nil, "dagger", "call", "--quiet", "create", "--cluster=sandbox"); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(w.root)
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	for i := range 1 + rolloutCount {
		folder := filepath.Join(w.dir, fmt.Sprintf("source-%d", i))
		err := errors.Join(editAbout(w.blog(), i), w.commit(ctx, "Change a comma"), os.CopyFS(folder, os.DirFS(w.source())))
		if err != nil {
			return nil, err
		}
		if folder, err = filepath.Rel(root, folder); err != nil { // a shell takes what begins with / for a path in the module's repository
			return nil, err
		}
		fmt.Fprintf(&script, "publish-blog --source %s --cluster sandbox --wait --format JSON\n", folder)
	}
	output, err := w.output(ctx, w.root, nil, "dagger", "--quiet", "shell", "-c", script.String())
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for results := json.NewDecoder(bytes.NewReader(output)); results.More(); {
		var result report.Result
		if err := results.Decode(&result); err != nil {
			return nil, fmt.Errorf("publish-blog --format=JSON printed no result: %w\n%s", err, output)
		}
		if result.Rollout == nil || !result.Rollout.Available || !result.Changed {
			return nil, fmt.Errorf("publish-blog --wait did not roll anything out: %s", bytes.TrimSpace(output))
		}
		took := time.Duration(result.Rollout.Seconds * float64(time.Second))
		all = append(all, took)
		fmt.Fprintf(os.Stderr, "push to available pod: %s\n", took.Round(10*time.Millisecond))
	}
	if len(all) != 1+rolloutCount {
		return nil, fmt.Errorf("%d publishes told their times, of %d", len(all), 1+rolloutCount)
	}
	return all[1:], nil
}
