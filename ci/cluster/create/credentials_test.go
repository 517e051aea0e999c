package create

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/cluster/timeline"
)

// newKeeper keeps credentials that cannot be had, so that asking for them shows in the error.
func newKeeper(t *testing.T, kept map[string]string) *keeper {
	t.Helper()
	record := &run.Record{Folder: t.TempDir()}
	var err error
	if record.Log, err = timeline.Open(record.Events()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Log.Close() })
	values := secrets.NewValues()
	values.Add(kept, secrets.SourceInfisical)
	k := &keeper{record: record, description: &config.Cluster{Name: "blue"}, access: &run.Access{Values: values}}
	for _, name := range []string{"A", "B"} {
		k.credentials = append(k.credentials, credential{name, "config " + name,
			func(text string, _ *config.Cluster, _ *machineconfig.Bundle, _ time.Time) error {
				if text != "well" {
					return errors.New("it is spoilt")
				}
				return nil
			},
			name == "B",
			func(context.Context) ([]byte, error) { return nil, errors.New("asked for " + name) }})
	}
	return k
}

// platform notes how the layer platform ended.
func (k *keeper) platform(t *testing.T, result string) {
	t.Helper()
	if err := k.record.Log.Append(timeline.Event{Kind: timeline.KindLayer, Layer: "platform", Phase: timeline.PhaseEnd, Result: result}); err != nil {
		t.Fatal(err)
	}
}

func TestCredentialsAreKeptOncePlatformIsUpAndNotBefore(t *testing.T) {
	for name, test := range map[string]struct {
		platform []string // how it ended, each time
		kept     map[string]string
		want     []string
	}{
		"nothing was up":         {nil, nil, nil},
		"the platform failed":    {[]string{timeline.ResultFailed}, nil, nil},
		"it is up":               {[]string{timeline.ResultOK}, nil, []string{"asked for A", "asked for B"}},
		"it failed, and came up": {[]string{timeline.ResultFailed, timeline.ResultOK}, nil, []string{"asked for A", "asked for B"}},
		"one is well":            {[]string{timeline.ResultOK}, map[string]string{"A": "well", "B": "spoilt"}, []string{"asked for B"}},
		"both are well":          {[]string{timeline.ResultOK}, map[string]string{"A": "well", "B": "well"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, test.kept)
			ended := k.start(t.Context())
			for _, result := range test.platform {
				k.platform(t, result)
			}
			err := ended()
			if len(test.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || strings.Count(err.Error(), "asked for") != len(test.want) || !strings.Contains(err.Error(), "the API of cluster blue answers, but its config") {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not said in %v", want, err)
				}
			}
		})
	}
}

func TestAnInterruptedRunSaysNothingOfCredentials(t *testing.T) {
	k := newKeeper(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := k.start(ctx)
	k.platform(t, timeline.ResultOK)
	interrupt()
	if err := ended(); err != nil {
		t.Error(err)
	}
}

// What can be had without a machine is kept before the first one, so that who may not write is told before anything is made.
func TestWhatNeedsNoMachineIsKeptBeforeTheFirst(t *testing.T) {
	for name, test := range map[string]struct {
		kept map[string]string
		want string
	}{
		"nothing is kept": {nil, "no machine was made, since the config B of cluster blue is not kept: asked for B"},
		"it is well":      {map[string]string{"B": "well"}, ""},
		"it is spoilt":    {map[string]string{"A": "well", "B": "spoilt"}, "no machine was made, since the config B of cluster blue is not kept: asked for B"},
	} {
		err := newKeeper(t, test.kept).ahead(t.Context())
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
