package kube

import (
	"fmt"
	"slices"
	"testing"
)

func TestWhatIsPulledIsReadFromTheKubeletsEvents(t *testing.T) {
	server := shared.Server(t)
	client := connect(t, server)
	count := 0
	tells := func(uid, node, reason, message, at string) {
		count++
		server.Put(Events, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: e%d, namespace: default}, reason: %s, message: '%s',
			involvedObject: {kind: Pod, name: p, namespace: default, uid: %s}, source: {component: kubelet, host: %s},
			firstTimestamp: "2026-11-24T03:%s:00Z", lastTimestamp: "2026-11-24T03:%s:00Z"}`, count, reason, message, uid, node, at, at))
	}
	tells("a", "worker-1", "Pulling", `Pulling image "quay.io/one:v1"`, "02")
	tells("b", "worker-2", "Pulling", `Pulling image "quay.io/one:v1"`, "01")
	tells("c", "worker-1", "Pulling", `Pulling image "quay.io/two:v1"`, "01")
	tells("c", "worker-1", "Pulled", `Successfully pulled image "quay.io/two:v1" in 3.2s (3.2s including waiting). Image size: 8 bytes.`, "02")
	tells("d", "worker-1", "Pulling", `Pulling image "quay.io/three:v1"`, "01")
	tells("d", "worker-1", "Failed", `Failed to pull image "quay.io/three:v1": failed to pull and unpack image "quay.io/three:v1": failed open: unexpected status: 429 Too Many Requests: toomanyrequests: no`, "02")
	tells("d", "worker-1", "Pulling", `Pulling image "quay.io/three:v1"`, "03")
	tells("e", "worker-1", "Failed", `Error: ImagePullBackOff`, "03")
	got, err := client.Pulls(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"quay.io/one:v1 on worker-2", "quay.io/one:v1 on worker-1", "quay.io/three:v1 on worker-1"}; !slices.Equal(got.Going, want) {
		t.Errorf("pulled are %q, want %q", got.Going, want)
	}
	tells("f", "worker-2", "Failed", `Failed to pull image "quay.io/four:v1": failed to resolve reference "quay.io/four:v1": not found`, "04")
	tells("c", "worker-1", "Failed", `Failed to pull image "quay.io/two:v1": 503`, "01")
	if got, err = client.Pulls(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{`quay.io/four:v1 on worker-2: failed to resolve reference "quay.io/four:v1": not found`, "quay.io/three:v1 on worker-1: 429 Too Many Requests: toomanyrequests: no"}; !slices.Equal(got.Refused, want) {
		t.Errorf("refused are %q, want %q", got.Refused, want)
	}
	if got.Pulled != 1 {
		t.Errorf("%d have arrived", got.Pulled)
	}
}
