package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/report"
)

func TestTheReportIsPrintedThoughTheRolloutWasNotSeen(t *testing.T) {
	printed := func(err error) (string, error) {
		var out bytes.Buffer
		var format cli.Format
		command := &cobra.Command{}
		command.SetOut(&out)
		format.Add(command)
		err = printRun(command, &format, report.Result{Rollback: true, Changed: true}, err)
		return out.String(), err
	}
	unseen := &report.UnseenError{Rollout: report.Rollout{Deployment: "blog/hugo-blog"}}
	if report, err := printed(unseen); !errors.Is(err, unseen) || !strings.HasPrefix(report, "Rolled back\n") {
		t.Errorf("%v and %q", err, report)
	}
	if report, err := printed(nil); err != nil || !strings.HasPrefix(report, "Rolled back\n") {
		t.Errorf("%v and %q", err, report)
	}
	refused := errors.New("refused")
	if report, err := printed(refused); !errors.Is(err, refused) || report != "" {
		t.Errorf("%v and %q", err, report)
	}
}
