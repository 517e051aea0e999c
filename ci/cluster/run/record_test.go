package run

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
)

func TestTheOldestRecordsGo(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	cluster := &Cluster{State: t.TempDir(), Out: &bytes.Buffer{}, Description: described}
	runs := filepath.Join(cluster.State, runsFolder)
	for i := range keptRuns + 2 {
		if err := os.MkdirAll(filepath.Join(runs, fmt.Sprintf("20260101T0000%02d.000Z-create", i), LogFolder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cluster.Execute(t.Context(), "create", func(context.Context, *Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(runs)
	if err != nil || len(left) != keptRuns+1 || left[0].Name() != "20260101T000002.000Z-create" {
		t.Errorf("of %d records %d are left, from %s on, %v", keptRuns+3, len(left), left[0].Name(), err)
	}
}

func TestARunKnowsWhetherAnotherOneWasBefore(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	cluster := &Cluster{State: t.TempDir(), Out: &bytes.Buffer{}, Description: described}
	for _, want := range []bool{false, true, true} {
		_, err := cluster.Execute(t.Context(), "create", func(context.Context, *Record) error {
			if got := cluster.ranBefore(); got != want {
				t.Errorf("another one was before: %v, want %v", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // records are called by their milliseconds
	}
}
