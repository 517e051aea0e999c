package run

import (
	"errors"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
)

// Where units are left out of a destroy, Terragrunt reports the one that failed as an early exit, and those that waited for it, too.
func TestTheLayerThatFailedIsNamedThoughTerragruntDoesNot(t *testing.T) {
	c := &Cluster{Description: &description.Cluster{Name: "blue"}}
	logs := newLogs(t.TempDir())
	logs.write("2-platform", "Error: error stopping VM: can't lock file")
	logs.write("1-secrets", "waits")
	now := time.Now()
	failed := &terragrunt.Failed{Report: terragrunt.Report{
		{Name: "1-secrets", Result: terragrunt.EarlyExit, Ended: now}, {Name: "2-platform", Result: terragrunt.EarlyExit, Ended: now},
	}}
	var failure *Failure
	if err := c.failure(&Record{Command: "destroy"}, logs, failed); !errors.As(err, &failure) || failure.Layer != "platform" || failure.Cause != "error stopping VM: can't lock file" {
		t.Errorf("the error is %v", err)
	}
	if err := logs.close(); err != nil {
		t.Error(err)
	}
}
