package gates

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// volume waits until a pod runs with a volume of a StorageClass in it: provisioned, attached to the pod's node and mounted there, which
// is what storage is for, and what no object of it alone says. Pod and claim are castle's own, and are removed whatever the outcome is.
type volume struct {
	Kube *kube.Client
	// Class is the StorageClass.
	Class string
}

const (
	proofVolume = "volume"
	nobody      = int64(65535) // the pause image's own user
)

// Wait waits as Waiter says.
func (v volume) Wait(ctx context.Context, report func(string)) error {
	// Who binds claims looks at one again only after 15 s where its class was not there yet.
	if err := v.Kube.Objects(kube.StorageClasses, "", kube.Present, v.Class).Wait(ctx, report); err != nil {
		return err
	}
	claim, pod := v.claim(), v.pod()
	defer claim.remove(ctx)
	defer pod.remove(ctx)
	// The scheduler, too, looks at a pod again only after a while where its claim was not bound yet.
	if err := v.until(ctx, claim, bound, report, pod); err != nil { // a claim does not go before its pod
		return err
	}
	return v.until(ctx, pod, runs, report)
}

// until creates the object, without those that have to go before, and waits for it. rule tells what it has come to.
func (v volume) until(ctx context.Context, object proof, rule func(*unstructured.Unstructured) (string, bool), report func(string), before ...proof) error {
	var own types.UID
	err := v.Kube.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
		for _, other := range before {
			if err := other.delete(ctx); err != nil {
				return kube.Answer{Seen: "cannot remove the last proof yet: " + kube.Brief(err).Error(), Err: err}
			}
		}
		created, err := object.create(ctx)
		if err != nil {
			return kube.Answer{Seen: "cannot create the proof yet: " + kube.Brief(err).Error(), Err: err}
		}
		own = created.GetUID()
		return kube.Answer{OK: true}
	}, report)
	if err != nil {
		return err
	}
	targets := []kube.Target{{Resource: object.resource, Namespace: proofNamespace, Name: object.name}, {Resource: kube.Events, Namespace: proofNamespace}}
	return v.Kube.Follow(ctx, targets, func(view kube.View) (string, bool, error) {
		objects, events := view[0], view[1]
		if len(objects) == 0 || objects[0].GetUID() != own {
			return "", false, fmt.Errorf("somebody removed %s/%s; run it again", proofNamespace, object.name)
		}
		seen, ok := rule(objects[0])
		if why := lastWarning(events, own); !ok && why != "" {
			seen += ": " + why
		}
		return seen, ok, nil
	}, report)
}

// bound tests a PersistentVolumeClaim.
func bound(claim *unstructured.Unstructured) (string, bool) {
	phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
	return "the claim is " + cmp.Or(phase, "new"), phase == string(corev1.ClaimBound)
}

// runs tests a Pod, whose container starts when all volumes are mounted.
func runs(pod *unstructured.Unstructured) (string, bool) {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return "the volume is there, the pod is " + cmp.Or(phase, "new"), phase == string(corev1.PodRunning)
}

// lastWarning is the message of the newest warning about an object; "" where there is none.
func lastWarning(events []*unstructured.Unstructured, object types.UID) (message string) {
	newest := ""
	for _, event := range events {
		about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "uid")
		kind, _, _ := unstructured.NestedString(event.Object, "type")
		at, _, _ := unstructured.NestedString(event.Object, "lastTimestamp")
		if about == string(object) && kind == corev1.EventTypeWarning && at >= newest {
			newest = at
			message, _, _ = unstructured.NestedString(event.Object, "message")
		}
	}
	return message
}

func (v volume) claim() proof {
	return v.proof(kube.Claims, "PersistentVolumeClaim", map[string]any{
		"storageClassName": v.Class,
		"accessModes":      []any{string(corev1.ReadWriteOnce)},
		"resources":        map[string]any{"requests": map[string]any{"storage": "1Mi"}},
	})
}

func (v volume) pod() proof {
	return v.proof(kube.Pods, "Pod", map[string]any{
		"terminationGracePeriodSeconds": int64(1),
		"automountServiceAccountToken":  false,
		"securityContext": map[string]any{
			"runAsNonRoot": true, "runAsUser": nobody, "fsGroup": nobody, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
		"containers": []any{map[string]any{
			"name": "pause", "image": machineconfig.PauseImage,
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
			},
			"volumeMounts": []any{map[string]any{"name": proofVolume, "mountPath": "/volume"}},
		}},
		"volumes": []any{map[string]any{"name": proofVolume, "persistentVolumeClaim": map[string]any{"claimName": proofVolume}}},
	})
}

func (v volume) proof(resource schema.GroupVersionResource, kind string, spec map[string]any) proof {
	return proof{kube: v.Kube, resource: resource, name: proofVolume, object: map[string]any{"apiVersion": "v1", "kind": kind, "spec": spec}}
}
