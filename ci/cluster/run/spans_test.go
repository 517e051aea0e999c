package run

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/base/tracing/tracingtest"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Gates within a layer are processes of their own, which know nothing of the trace: they write to the event log.
func TestWhatTheHooksNoteAreSpansOfTheRun(t *testing.T) {
	redact.Add(redacttest.Token)
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	handed, err := described.HandOver()
	if err != nil {
		t.Fatal(err)
	}
	cluster := &Cluster{State: t.TempDir(), Out: &bytes.Buffer{}, Description: described}
	ctx, stop, received := tracingtest.Trace(t)
	_, err = cluster.Execute(ctx, "create", func(_ context.Context, record *Record) error {
		t.Setenv(config.Variable, handed)
		t.Setenv(VariableEvents, record.Events())
		logs := newLogs(t.TempDir())
		record.logs = logs
		d := &conductor{Cluster: cluster, record: record, notes: notes{cluster: described.Name, log: record.Log}}
		d.append(timeline.Event{Kind: timeline.KindLayer, Layer: layers.Platform, Phase: timeline.PhaseStart})
		gate := gates.Event{Condition: "nodes", Time: time.Now(), Phase: gates.PhaseStart}
		err := inHook(t, func(hook *Hook) error {
			hook.append(gate.Record(layers.Platform))
			gate.Phase, gate.Err = gates.PhaseEnd, errors.New("refused: "+redacttest.Token)
			hook.append(gate.Record(layers.Platform))
			return hook.noted()
		})
		logs.write("2-platform", "castle: waiting for nodes: refused: "+redacttest.Token)
		failed := errors.New("terragrunt: exit status 1")
		d.append(timeline.Event{Kind: timeline.KindLayer, Layer: layers.Platform, Phase: timeline.PhaseEnd,
			Result: timeline.ResultFailed, Cause: d.cause(layers.Named(layers.Platform), failed)})
		err = errors.Join(err, d.noted(), logs.close())
		if err != nil {
			t.Error(err)
		}
		return &Failure{Layer: layers.Platform, Cause: logs.cause(layers.Platform)}
	})
	if failure, is := errors.AsType[*Failure](err); !is || failure.Layer != layers.Platform {
		t.Fatal(err)
	}
	stop()
	want := `create blue: error: waiting for nodes: refused: [redacted]
  layer platform: error: waiting for nodes: refused: [redacted]
    gate nodes: error: refused: [redacted]
`
	if tree := received.Tree(); tree != want {
		t.Errorf("got\n%s, want\n%s", tree, want)
	}
	if found := redacttest.Found(received.Text()); len(found) > 0 {
		t.Errorf("%q in the spans", found)
	}
}

// inHook does what one call of a hook does.
func inHook(t *testing.T, do func(*Hook) error) error {
	t.Helper()
	hook, err := OpenHook()
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(do(hook), hook.Close())
}
