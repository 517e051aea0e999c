package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"tazlab.net/castle/ci/cluster/layers/state"
)

// message is a line of what OpenTofu tells programs: https://opentofu.org/docs/internals/machine-readable-ui. Other types of
// lines than these three are skipped, and so is what these hold beside it. Of a resource's attributes, a stream has the id only.
type message struct {
	Type   string `json:"type"`
	Text   string `json:"@message"`
	Change struct {
		Resource struct {
			Address string `json:"addr"`
			Type    string `json:"resource_type"`
			Name    string `json:"resource_name"`
			Key     any    `json:"resource_key"`
		} `json:"resource"`
		Action string `json:"action"`
		Reason string `json:"reason"`
	} `json:"change"`
	Outputs map[string]struct {
		Action string `json:"action"`
	} `json:"outputs"`
}

// Types of messages.
const (
	plannedChange = "planned_change"
	changeSummary = "change_summary"
	outputs       = "outputs"
)

// unchanged is the action of a resource or an output that stays as it is.
const unchanged = "noop"

// What is said of a plan that changes no resource, in the words that OpenTofu has for people.
const (
	noChanges   = "No changes. Your infrastructure matches the configuration."
	onlyOutputs = "Changes to Outputs:"
)

// actions are how the text for people speaks of each action: internal/command/jsonformat/plan.go of OpenTofu. Of a resource that
// is only moved, castle says nothing.
var actions = map[string]string{
	"create":  "will be created",
	"read":    "will be read during apply",
	"update":  "will be updated in-place",
	"replace": "must be replaced",
	"delete":  "will be destroyed",
	"remove":  "will be removed from the OpenTofu state but will not be destroyed",
	"import":  "will be imported",
}

// replacements are the reasons for which that text speaks of a replacement in other words.
var replacements = map[string]string{
	"tainted":              "is tainted, so it must be replaced",
	"requested":            "will be replaced, as requested",
	"replace_triggered_by": "will be replaced due to changes in replace_triggered_by",
}

// read takes the stream of one plan. One that ends early, because the plan failed, gives what it has.
func (p *LayerPlan) read(stream io.Reader) error {
	var summary string
	resources, others := false, false
	for lines := json.NewDecoder(stream); ; {
		var line message
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("what OpenTofu tells of the plan of layer %s: %w", p.Layer, err)
		}
		switch line.Type {
		case plannedChange:
			resources = resources || line.Change.Action != unchanged
			if state.IsMachine(line.Change.Resource.Type, line.Change.Resource.Name) {
				p.note(fmt.Sprint(line.Change.Resource.Key), line.Change.Action, line.Change.Reason)
			}
			if words := wording(line.Change.Action, line.Change.Reason); words != "" {
				p.Changes = append(p.Changes, line.Change.Resource.Address+" "+words)
			}
		case changeSummary:
			summary = line.Text
		case outputs:
			for _, output := range line.Outputs {
				others = others || output.Action != unchanged
			}
		}
	}
	slices.Sort(p.Changes) // they come in the order in which they were planned, which differs each time
	switch {
	case summary == "" || resources:
		p.Summary = summary
	case others:
		p.Summary = onlyOutputs
	default:
		p.Summary = noChanges
	}
	return nil
}

// note remembers a machine that would go. One whose making failed half-way holds nothing.
func (p *LayerPlan) note(node, action, reason string) {
	switch {
	case action == "delete":
		p.machines.Removed = append(p.machines.Removed, node)
	case action == "replace" && reason != "tainted":
		p.machines.Replaced = append(p.machines.Replaced, node)
	}
}

// wording completes a resource's address to a sentence; it is empty for an action that is not told.
func wording(action, reason string) string {
	if words, special := replacements[reason]; special && action == "replace" {
		return words
	}
	return actions[action]
}
