package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
	"tazlab.net/castle/ci/cluster/timeline"
)

// newConductor conducts a run whose record is in a folder of the test's.
func newConductor(t *testing.T) *conductor {
	t.Helper()
	record := &Record{Command: "create", Folder: t.TempDir(), logs: newLogs(t.TempDir())}
	var err error
	if record.Log, err = timeline.Open(record.Events()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(record.Log.Close(), record.logs.close()) })
	return &conductor{
		walk: walk{command: []string{"apply"}}, Cluster: &Cluster{Description: &config.Cluster{Name: "blue"}}, record: record,
		notes: notes{cluster: "blue", log: record.Log}, awaiting: map[string]context.CancelCauseFunc{},
	}
}

func TestTheFirstLayerThatFailedIsNamedInTheToolsOwnWords(t *testing.T) {
	d := newConductor(t)
	d.write("2-platform", "Error: error stopping VM: can't lock file")
	tools := errors.New("terragrunt: exit status 1")
	for name, c := range map[string]struct {
		outcomes     []layers.Outcome
		layer, cause string
	}{
		"all went well":   {[]layers.Outcome{{Layer: layers.Named(layers.Engine)}}, "", ""},
		"a tool's error":  {[]layers.Outcome{{Layer: layers.Named(layers.Platform), Err: tools}, {Layer: layers.Named(layers.Secrets), Err: layers.ErrSkipped}}, "platform", "error stopping VM: can't lock file"},
		"no tool's words": {[]layers.Outcome{{Layer: layers.Named(layers.Engine), Err: tools}}, "engine", "terragrunt: exit status 1"},
		"castle's own":    {[]layers.Outcome{{Layer: layers.Named(layers.Platform), Err: &ownError{errors.New("waiting for nodes")}}}, "platform", "waiting for nodes"},
		"two":             {[]layers.Outcome{{Layer: layers.Named(layers.Storage), Err: tools}, {Layer: layers.Named(layers.Platform), Err: tools}}, "storage", "terragrunt: exit status 1"},
	} {
		err := d.verdict(t.Context(), c.outcomes)
		failure, is := errors.AsType[*Failure](err)
		if is != (c.layer != "") || is && (failure.Layer != c.layer || failure.Cause != c.cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := d.verdict(ctx, []layers.Outcome{{Layer: layers.Named(layers.Platform), Err: tools}}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestAGateEndsWhenTheLayerFailsThatItWaitsFor(t *testing.T) {
	d := newConductor(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	d.awaiting[layers.GitOps] = cancel
	d.failed(layers.Named(layers.Storage))
	if ctx.Err() != nil {
		t.Error("gitops waits for nothing of storage's")
	}
	d.failed(layers.Named(layers.Engine))
	if cause := context.Cause(ctx); cause == nil || !strings.Contains(cause.Error(), "layer engine failed") {
		t.Errorf("the wait ended by %v", cause)
	}
}

// newBringUp is two machines that OpenTofu is about to make.
func newBringUp(t *testing.T) *bringUp {
	t.Helper()
	b := newMachines(state.Store{Folder: t.TempDir()}, map[string]int{"cp-1": 1, "cp-2": 2})
	if err := b.states.NoteUnfinished(t.Context(), []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	return b
}

// is tells whether a machine is made, within a moment.
func (b *bringUp) is(t *testing.T, node string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := b.await(ctx, node)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return err == nil
}

func TestAMachineIsMadeWhenOpenTofuSaysSoAndAllAreWhenItHasEnded(t *testing.T) {
	b := newBringUp(t)
	noted := func(want ...int) {
		t.Helper()
		if ids, err := b.states.Unfinished(t.Context()); err != nil || !slices.Equal(ids, want) {
			t.Errorf("the note of unfinished machines names %v, not %v: %v", ids, want, err)
		}
	}
	b.see(`proxmox_virtual_environment_vm.node["cp-1"]: Creating...
proxmox_virtual_environment_vm.node["cp-1"]: Destruction complete after 1s
proxmox_virtual_environment_vm.node["another"]: Creation complete after 4s [id=421]
terraform_data.gate["cp-1"]: Creation complete after 0s [id=1]`)
	if b.is(t, "cp-1") {
		t.Error("a machine passes for made before it is")
	}
	noted(1, 2)
	b.see("x\n" + `proxmox_virtual_environment_vm.node["cp-1"]: Creation complete after 4s [id=421]`)
	if !b.is(t, "cp-1") {
		t.Error("a machine that is made does not pass for it")
	}
	noted(2) // before it is configured
	if b.is(t, "cp-2") {
		t.Error("another machine passes for made")
	}
	close(b.done)
	if err := b.wait(); err != nil {
		t.Error(err)
	}
	if !b.is(t, "cp-2") {
		t.Error("when OpenTofu has ended, all machines are made")
	}
}

// A stand-in of Terragrunt asks for what OpenTofu gets, and ends as it is told to.
func TestWhatGoesBeforeACommandIsDoneBeforeOpenTofuGetsItsVariables(t *testing.T) {
	for name, c := range map[string]struct {
		prepared error
		says     string
		own      bool
	}{
		"it goes well": {nil, "exit status 7", false},
		"it does not":  {errors.New("VM 421 is somebody else's"), "VM 421 is somebody else's", true},
	} {
		cluster, given, _ := isolated(t)
		left := filepath.Join(t.TempDir(), state.ErroredFile)
		if err := os.WriteFile(left, []byte("a state"), 0o600); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		units := &Units{cluster: cluster, access: given.access, given: given, runner: terragrunt.Runner{
			Binary: self, Tofu: self, Dir: cluster.units(), Downloads: t.TempDir(),
			Env: append(given.everybodys(), playVariable+"="+filepath.Dir(left)),
		}}
		asked := ""
		err = units.run(t.Context(), layers.Named(layers.Platform), func(_ context.Context, folder string) error {
			asked = folder
			return c.prepared
		}, "apply")
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, new(*ownError)) != c.own {
			t.Errorf("%s: %v", name, err)
		}
		if asked != filepath.Dir(left) {
			t.Errorf("%s: it was prepared in %q", name, asked)
		}
		if _, err := os.Stat(filepath.Join(cluster.State, "rescued")); err != nil {
			t.Errorf("%s: the state that OpenTofu has left is not kept: %v", name, err)
		}
	}
}

// playVariable has this program be Terragrunt, whose OpenTofu runs in that folder.
const playVariable = "CASTLE_TEST_TERRAGRUNT"

func playTerragrunt(folder string) error {
	_, err := environment.Ask(environment.Request{Layer: layers.Platform, Command: "apply", Folder: folder})
	if err != nil {
		return err
	}
	os.Exit(7)
	return nil
}
