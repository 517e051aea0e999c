package restart

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annotation holds a note on a Node, from before it is cordoned until it is back.
const annotation = "castle.tazlab.net/restart"

// note is what castle is about to do to a node, and what it was like before.
type note struct {
	Boot     string `json:"boot"`     // the boot that is to end
	Cordoned bool   `json:"cordoned"` // it was so already, and stays so
	Changing bool   `json:"changing"` // its VM or its configuration may have been changed
}

// release lets pods come to the node again, unless somebody else had cordoned it.
func (r *rolling) release(ctx context.Context, name string, about note) error {
	cordoned := about.Cordoned
	return r.write(ctx, name, nil, &cordoned)
}

// write puts a note on a Node, or removes it where it is nil, and cordons the node or not, where that is said.
func (r *rolling) write(ctx context.Context, name string, about *note, cordoned *bool) error {
	var text any // null removes it
	if about != nil {
		data, err := json.Marshal(about)
		if err != nil {
			return err
		}
		text = string(data)
	}
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: text}}}
	if cordoned != nil {
		change["spec"] = map[string]any{"unschedulable": *cordoned}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return r.kube.Ask(ctx, func(ctx context.Context) error {
		_, err := r.typed.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// noteOf reads the note on a Node. One that cannot be read says nothing, and a restart too many does no harm.
func noteOf(node *corev1.Node) (about note, has bool) {
	text, has := node.Annotations[annotation]
	if has {
		_ = json.Unmarshal([]byte(text), &about)
	}
	return about, has
}
