package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/publish/report"
)

func TestAResultIsWaitedForAndTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "result.json")
		var result report.Result
		waited := make(chan error, 1)
		go func() {
			var err error
			result, err = handedOver(t.Context(), file)
			waited <- err
		}()
		synctest.Wait() // it has looked, and found nothing
		data, err := json.Marshal(report.Result{Changed: true, GitOps: report.GitOps{Commit: "c0ffee"}})
		if err := errors.Join(err, renameio.WriteFile(file, data, 0o644), <-waited); err != nil {
			t.Fatal(err)
		}
		if !result.Changed || result.GitOps.Commit != "c0ffee" {
			t.Errorf("%+v", result)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there still: %v", err)
		}
	})
}

func TestNoResultIsWaitedForAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := handedOver(ctx, filepath.Join(t.TempDir(), "result.json")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoResultIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte("no JSON"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := handedOver(t.Context(), file); err == nil || !strings.Contains(err.Error(), "other.json is not what castle-publish writes") {
		t.Errorf("%v", err)
	}
}
