package plan

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/test/needs"
)

var update = flag.Bool("update", false, "record anew what OpenTofu says")

// cases are plans of OpenTofu's. A folder of testdata has the module (before, where something was applied already, and
// after), the stream that OpenTofu wrote (stream.json), and what its text for people says of the same plan (text.txt).
var cases = map[string]struct {
	first   []string // a command between the two modules
	options []string // of the plan
}{
	"fresh":     {},
	"changed":   {first: []string{"taint", "terraform_data.tainted"}, options: []string{"-replace=terraform_data.requested"}},
	"moved":     {},
	"outputs":   {},
	"unchanged": {},
	"failed":    {},
}

func TestAStreamSaysWhatTheTextForPeopleSays(t *testing.T) {
	for name := range cases {
		stream, err := os.Open(filepath.Join("testdata", name, "stream.json"))
		if err != nil {
			t.Fatal(err)
		}
		plan := LayerPlan{Layer: name}
		if err := errors.Join(plan.read(stream), stream.Close()); err != nil {
			t.Error(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", name, "text.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(plan); got != string(want) {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
}

// What is recorded must be what the OpenTofu of today says.
func TestTheRecordsAreTrue(t *testing.T) {
	tofu := needs.Programs(t, "tofu")["tofu"]
	for name := range cases {
		stream, text := record(t, tofu, name)
		if *update {
			for file, data := range map[string]string{"stream.json": stream, "text.txt": text} {
				if err := os.WriteFile(filepath.Join("testdata", name, file), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		plan := LayerPlan{Layer: name}
		if err := plan.read(strings.NewReader(stream)); err != nil {
			t.Error(err)
		}
		recorded, err := os.ReadFile(filepath.Join("testdata", name, "text.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(plan); got != text || text != string(recorded) {
			t.Errorf("%s: the stream says\n%sthe text\n%sthe record\n%s", name, got, text, recorded)
		}
	}
}

func TestAPlanThatDidNotHappenHasNoStream(t *testing.T) {
	for result, want := range map[error]LayerPlan{
		layers.ErrSkipped:          {Summary: "can be planned when the layers that it needs can"},
		errors.New("tofu: exit 1"): {Failed: true},
	} {
		var got LayerPlan
		if err := got.fill(result, filepath.Join(t.TempDir(), "engine.json")); err != nil || got.Summary != want.Summary || got.Failed != want.Failed {
			t.Errorf("%s: %+v, %v", result, got, err)
		}
	}
	if err := new(LayerPlan).fill(nil, filepath.Join(t.TempDir(), "engine.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plan that succeeded and left nothing: %v", err)
	}
}

func TestNoSecretIsInAPlan(t *testing.T) {
	var plan LayerPlan
	stream, err := os.ReadFile(filepath.Join("testdata", "fresh", "stream.json"))
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary-of-a-node"
	redact.Add(canary)
	file := filepath.Join(t.TempDir(), "stream.json")
	if err := os.WriteFile(file, bytes.ReplaceAll(stream, []byte("worker-1"), []byte(canary)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plan.fill(nil, file); err != nil {
		t.Fatal(err)
	}
	if got := lines(plan); strings.Contains(got, canary) || !strings.Contains(got, redact.Mark) {
		t.Errorf("got\n%s", got)
	}
}

func TestAStreamThatIsNoneIsAnError(t *testing.T) {
	plan := LayerPlan{Layer: "engine"}
	if err := plan.read(strings.NewReader("Plan: 1 to add\n")); err == nil || !strings.Contains(err.Error(), "layer engine") {
		t.Errorf("got %v", err)
	}
}

// An ephemeral resource is in the stream, and there is nothing to do.
func TestAResourceThatStaysAsItIsIsNoChange(t *testing.T) {
	var plan LayerPlan
	err := plan.read(strings.NewReader(`{"type":"planned_change","change":{"resource":{"addr":"ephemeral.some_token.it"},"action":"noop"}}
{"type":"change_summary","@message":"Plan: 0 to add, 0 to change, 0 to destroy."}
`))
	if got := lines(plan); err != nil || got != noChanges+"\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTheTextNamesEachLayerWithItsChanges(t *testing.T) {
	plan := Plan{Cluster: "sandbox", Layers: []LayerPlan{
		{Layer: "secrets", Summary: "Plan: 1 to add, 0 to change, 0 to destroy.", Changes: []string{"terraform_data.inventory will be created"}},
		{Layer: "engine", Summary: "one line\nanother", Failed: true},
	}}
	want := "secrets  Plan: 1 to add, 0 to change, 0 to destroy.\n" +
		"           terraform_data.inventory will be created\n" +
		"engine   one line\n" +
		"         another\n"
	if got := plan.Text(); got != want {
		t.Errorf("got\n%s", got)
	}
}

func lines(plan LayerPlan) string {
	return strings.Join(append([]string{plan.Summary}, plan.Changes...), "\n") + "\n"
}

// record has OpenTofu plan a case, and gives the stream, and what the text beside it says in the stream's words.
func record(t *testing.T, tofu, name string) (stream, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	folder := t.TempDir()
	file := filepath.Join(folder, "stream.json")
	run := func(args ...string) string {
		command := exec.CommandContext(ctx, tofu, args...)
		command.Dir = folder
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1"}
		out, err := command.CombinedOutput()
		if failed := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &failed) && name == "failed") {
			t.Fatalf("tofu %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	module := func(step string) bool {
		err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", name, step)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	if module("before") {
		run("init", "-no-color")
		run("apply", "-no-color", "-auto-approve")
		if first := cases[name].first; first != nil {
			run(first...)
		}
		if err := os.Remove(filepath.Join(folder, "main.tf")); err != nil {
			t.Fatal(err)
		}
	}
	if !module("after") {
		t.Fatalf("%s has no module", name)
	}
	run("init", "-no-color")
	out := run(slices.Concat([]string{"plan", "-no-color", "-json-into=" + file}, cases[name].options)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), forPeople(out)
}

var (
	summaryLine = regexp.MustCompile(`(?m)^(?:Plan: .*|No changes\..*|Changes to Outputs:)$`)
	changeLine  = regexp.MustCompile(`(?m)^ +# (.+ (?:will|must) be .+?) *$`)
)

// forPeople takes the summary and the changes out of OpenTofu's text.
func forPeople(text string) string {
	var changes []string
	for _, match := range changeLine.FindAllStringSubmatch(text, -1) {
		changes = append(changes, match[1])
	}
	slices.Sort(changes)
	return strings.Join(append([]string{summaryLine.FindString(text)}, changes...), "\n") + "\n"
}

func TestWhatCreateRefusesIsToldWithTheWay(t *testing.T) {
	plan := LayerPlan{Layer: "platform"}
	vm := func(node, action, reason string) string {
		return `{"type":"planned_change","change":{"resource":{"addr":"x","resource_type":"proxmox_virtual_environment_vm","resource_key":"` + node + `"},"action":"` + action + `","reason":"` + reason + `"}}` + "\n"
	}
	err := plan.read(strings.NewReader(vm("blue-worker-2", "delete", "delete_because_each_key") + vm("blue-worker-3", "replace", "cannot_update") +
		vm("blue-worker-4", "replace", "tainted") + vm("blue-worker-5", "create", "") + vm("blue-worker-6", "update", "")))
	if err != nil {
		t.Fatal(err)
	}
	refused := plan.machines.Refused(&config.Cluster{Name: "blue"}, nil, nil)
	if refused == nil {
		t.Fatal("nothing is refused")
	}
	text := (&Plan{Cluster: "blue", Layers: []LayerPlan{plan}, Refused: strings.Split(refused.Error(), "\n")}).Text()
	for _, want := range []string{"\ncreate would remove the VM of blue-worker-2", "remove-node --cluster blue --node blue-worker-2", "\ncreate would replace the VM of blue-worker-3"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Count(text, "create would") != 2 {
		t.Errorf("more is refused:\n%s", text)
	}
}

// A machine that castle does not make is a record, and no VM.
func TestWhatCreateRefusesOfMachinesThatAreThereIsToldAsWell(t *testing.T) {
	plan := LayerPlan{Layer: "platform"}
	err := plan.read(strings.NewReader(`{"type":"planned_change","change":{"resource":{"addr":"x","resource_type":"terraform_data","resource_name":"node","resource_key":"metal-worker-3"},"action":"delete"}}
{"type":"planned_change","change":{"resource":{"addr":"y","resource_type":"terraform_data","resource_name":"other","resource_key":"another"},"action":"delete"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	refused := plan.machines.Refused(&config.Cluster{Name: "metal", Platform: config.PlatformTalos}, nil, nil)
	if refused == nil || !strings.Contains(refused.Error(), "cluster.yaml does not list metal-worker-3 any more") || strings.Contains(refused.Error(), "list another") {
		t.Errorf("refused: %v", refused)
	}
}
