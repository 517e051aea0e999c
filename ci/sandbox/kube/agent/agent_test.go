//go:build linux

package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestVariablesAreExpandedAsInContainers(t *testing.T) {
	e := &environment{values: map[string]string{}}
	e.set("A", "1")
	e.set("B", "$(A)")
	for text, want := range map[string]string{
		"":                 "",
		"--x=$(A)":         "--x=1",
		"$(A)$(A).svc.":    "11.svc.",
		"$$(A)":            "$(A)",
		"$(UNKNOWN)":       "$(UNKNOWN)",
		"$(A":              "$(A",
		"$A $":             "$A $",
		"$(B) stays as is": "$(A) stays as is",
	} {
		if got := e.expand(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestAnImageFindsItsProgramByNameOrByTheNamesAbove(t *testing.T) {
	known := map[string]string{"quay.io/metallb/controller": "/metallb", "localhost:5000/tools": "/tools"}
	for image, want := range map[string]string{
		"quay.io/metallb/controller":              "/metallb",
		"quay.io/metallb/controller:v0.15.2":      "/metallb",
		"quay.io/metallb/controller@sha256:00":    "/metallb",
		"quay.io/metallb/controller:v1@sha256:00": "/metallb",
		"quay.io/metallb/controller-extra:v1":     "",
		"quay.io/metallb/speaker:v0.15.2":         "",
		"localhost:5000/tools/kubectl:v1":         "/tools",
		"localhost:5000/other":                    "",
		"nginx":                                   "",
	} {
		if got := program(known, image); got != want {
			t.Errorf("%s is %q, want %q", image, got, want)
		}
	}
}

// disks are the images of nodes whose disks are in a folder; pulling one takes no time.
func disks(t *testing.T, folder string) *Images {
	t.Helper()
	opened, err := OpenImages(folder, func(context.Context, string, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestAnImageIsPulledOncePerNodeAndNotAgainAfterAPowerCut(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "agent")
	pulls := 0
	pull := func(i *Images, node string) {
		t.Helper()
		before := pulls
		did, err := i.Pull(t.Context(), node, "blog:1", func() { pulls++ })
		if err != nil || did != (pulls > before) {
			t.Fatalf("%t, %v", did, err)
		}
	}
	first := disks(t, folder)
	pull(first, "a")
	pull(first, "a")
	pull(first, "b")
	if pulls != 2 {
		t.Fatalf("%d pulls on two nodes", pulls)
	}
	again := disks(t, folder)
	pull(again, "a")
	if pulls != 2 {
		t.Error("pulled again after a power cut")
	}
	if err := again.Forget("a"); err != nil {
		t.Fatal(err)
	}
	again = disks(t, folder)
	pull(again, "a")
	if pulls != 3 {
		t.Error("not pulled again on an empty disk")
	}
	if err := errors.Join(os.RemoveAll(folder), again.ForgetAll()); err != nil {
		t.Fatal(err)
	}
	pull(again, "b")
	if pulls != 4 {
		t.Error("not pulled again when all disks are empty")
	}
}

func TestAPullThatWasCutOffIsNone(t *testing.T) {
	images := disks(t, t.TempDir())
	images.take = func(context.Context, string, string) error { return nil } // it did not notice
	ctx, cut := context.WithCancel(t.Context())
	if _, err := images.Pull(ctx, "a", "blog:1", cut); !errors.Is(err, context.Canceled) {
		t.Errorf("the pull ended with %v", err)
	}
	if did, err := images.Pull(t.Context(), "a", "blog:1", func() {}); err != nil || !did {
		t.Errorf("it counts as pulled: %v", err)
	}
}

func TestAPullWaitsForTheRestOfOneThatIsUnderWay(t *testing.T) {
	images := disks(t, t.TempDir())
	end := make(chan struct{})
	images.take = func(context.Context, string, string) error {
		<-end
		return nil
	}
	begun, ended := make(chan struct{}), make(chan bool)
	pull := func(begins func()) {
		did, err := images.Pull(t.Context(), "a", "blog:1", begins)
		if err != nil {
			t.Error(err)
		}
		ended <- did
	}
	go pull(func() { close(begun) })
	<-begun
	go pull(func() { t.Error("it is pulled twice") })
	impatient, leave := context.WithCancel(t.Context())
	leave()
	if _, err := images.Pull(impatient, "a", "blog:1", func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("one who leaves meanwhile is told %v", err)
	}
	close(end)
	if first, second := <-ended, <-ended; first == second {
		t.Errorf("both did it: %t", first)
	}
}

func TestAPublishedVolumeChangesAllAtOnce(t *testing.T) {
	folder := t.TempDir()
	write := func(version int, files map[string][]byte) {
		t.Helper()
		if err := writeAtOnce(folder, files, version); err != nil {
			t.Fatal(err)
		}
	}
	write(1, map[string][]byte{"tls.crt": []byte("one"), "tls.key": []byte("one"), "sub/deep": []byte("x")})
	write(2, map[string][]byte{"tls.crt": []byte("two"), "sub/deep": []byte("y")})
	for name, want := range map[string]string{"tls.crt": "two", "sub/deep": "y"} {
		if data, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{"..data", "..v2", "sub", "tls.crt"}; !slices.Equal(names, want) {
		t.Errorf("the volume holds %v, want %v", names, want)
	}
	if err := writeAtOnce(folder, map[string][]byte{"../escape": nil}, 3); err == nil {
		t.Error("a path that leaves the volume was written")
	}
}

func TestThePhaseFollowsFromTheContainers(t *testing.T) {
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
	crashing := corev1.ContainerStatus{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}
	running := corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := func(code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	for name, c := range map[string]struct {
		restart  corev1.RestartPolicy
		statuses []corev1.ContainerStatus
		want     corev1.PodPhase
	}{
		"nothing started":              {corev1.RestartPolicyAlways, []corev1.ContainerStatus{waiting, waiting}, corev1.PodPending},
		"one of two started":           {corev1.RestartPolicyAlways, []corev1.ContainerStatus{running, waiting}, corev1.PodRunning},
		"between two lives":            {corev1.RestartPolicyAlways, []corev1.ContainerStatus{crashing}, corev1.PodRunning},
		"ended, to be started again":   {corev1.RestartPolicyAlways, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning},
		"a job that is done":           {corev1.RestartPolicyNever, []corev1.ContainerStatus{ended(0)}, corev1.PodSucceeded},
		"a job that failed":            {corev1.RestartPolicyNever, []corev1.ContainerStatus{ended(0), ended(2)}, corev1.PodFailed},
		"a job that will be repeated":  {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{ended(2)}, corev1.PodRunning},
		"a job that need not be again": {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{ended(0)}, corev1.PodSucceeded},
	} {
		sums := summary{restart: c.restart}
		for _, status := range c.statuses {
			sums.add(&container{}, status)
		}
		if got := sums.phase(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAContainerRunsAsWhomItNames(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	yes := true
	for name, c := range map[string]struct {
		pod        *corev1.PodSecurityContext
		container  *corev1.SecurityContext
		root       bool
		uid, group uint32
	}{
		"nobody in particular":         {nil, nil, true, 0, 0},
		"the pod's user":               {&corev1.PodSecurityContext{RunAsUser: number(1000)}, nil, false, 1000, 0},
		"the container's user":         {&corev1.PodSecurityContext{RunAsUser: number(1000)}, &corev1.SecurityContext{RunAsUser: number(7), RunAsGroup: number(8)}, false, 7, 8},
		"anybody but root":             {nil, &corev1.SecurityContext{RunAsNonRoot: &yes}, false, nonroot, nonroot},
		"anybody but root, in a group": {&corev1.PodSecurityContext{FSGroup: number(1337)}, &corev1.SecurityContext{RunAsNonRoot: &yes}, false, nonroot, nonroot},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: c.pod}}
		got := user(pod, &corev1.Container{SecurityContext: c.container})
		if (got == nil) != c.root {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if got != nil && (got.Uid != c.uid || got.Gid != c.group) {
			t.Errorf("%s: %d:%d, want %d:%d", name, got.Uid, got.Gid, c.uid, c.group)
		}
	}
}

func TestResourcesAreRoundedUp(t *testing.T) {
	w := &worker{node: &node{Node: Node{Cores: 4, Memory: 8192}}}
	spec := &corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}}
	for of, want := range map[string]string{"limits.cpu": "2", "limits.memory": "67108864", "requests.cpu": "0"} {
		got, err := w.resource(spec, &corev1.ResourceFieldSelector{Resource: of})
		if err != nil || got != want {
			t.Errorf("%s is %q, %v, want %s", of, got, err, want)
		}
	}
	if got, err := w.resource(&corev1.Container{}, &corev1.ResourceFieldSelector{Resource: "limits.cpu"}); err != nil || got != "4" {
		t.Errorf("a container without limits has %q CPUs, %v, want the node's", got, err)
	}
}

func TestTheLastLinesOfALogAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"two of three":            {"a\nb\nc\n", 2, "b\nc\n"},
		"more than there are":     {"a\nb\n", 9, "a\nb\n"},
		"an unfinished last line": {"a\nb", 1, "b"},
		"none":                    {"a\n", 0, ""},
		"of an empty log":         {"", 3, ""},
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteAt([]byte(c.text), 0); err != nil {
			t.Fatal(err)
		}
		if err := seekLines(file, c.lines); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
