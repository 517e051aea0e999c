package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// sandbox is the cluster that the demo creates. It stays as it is between demos, as a cluster does.
const sandbox = "sandbox"

// timeline is where the time line of the newest create is put.
func (d Demo) timeline() string { return filepath.Join(d.Dir, "timeline") }

// cluster creates the sandbox, publishes into it until the new pod is available, and shows where the time line is.
func (d Demo) cluster(ctx context.Context, environment []string) error {
	for _, step := range []struct {
		deadline  time.Duration
		arguments []string
	}{
		{30 * time.Minute, []string{"create", "--cluster=" + sandbox}},
		// Before the next run of any kind, so that it is create's.
		{5 * time.Minute, []string{"timeline", "--cluster=" + sandbox, "export", "--path=" + d.timeline(), "--wipe"}},
		{15 * time.Minute, []string{"publish-blog", "--headers=strict", "--cluster=" + sandbox, "--wait"}},
	} {
		if err := d.run(ctx, environment, step.deadline, step.arguments...); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.Out, "\nThe time line of create: %s\n", filepath.Join(d.timeline(), "timeline.html"))
	return nil
}

// run is a `dagger call` whose output is shown as it comes.
func (d Demo) run(ctx context.Context, environment []string, deadline time.Duration, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	command := d.dagger(ctx, environment, append([]string{"call"}, arguments...)...)
	command.Stdout = d.Out
	fmt.Fprintf(d.Out, "\n$ dagger %s\n", strings.Join(command.Args[1:], " "))
	if err := command.Run(); err != nil {
		return fmt.Errorf("dagger call %s: %w", arguments[0], err)
	}
	return nil
}
