//go:build linux

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/sandbox/profile"
)

// windowImage is kubectl as a container: its proxy shows what a pod sees, files and the API as its service account.
const windowImage = "registry.example/tools/kubectl"

// windowDeployment shows a Secret below /files/, and the API below the pod's own name.
func windowDeployment() *appsv1.Deployment {
	d := deployment("window", windowImage+":v1", 1)
	field := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	grace := int64(5)
	d.Spec.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "app", Image: windowImage + ":v1",
			Args: []string{"proxy", "--address=$(ADDRESS)", "--port=8001", "--accept-hosts=.*", "--api-prefix=/$(POD)/", "--www=/secret", "--www-prefix=/files/"},
			Env:  []corev1.EnvVar{{Name: "ADDRESS", Value: "0.0.0.0"}, {Name: "POD", ValueFrom: field}},
			// Its first probe may come before its socket.
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8001)}}},
			VolumeMounts:   []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}},
		}},
		Volumes: []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "shown"}}}},
	}
	return d
}

func createWindow(ctx context.Context, client kubernetes.Interface) (url string, err error) {
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "window"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	service, err := client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "window"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "window"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8001)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	_, err = client.AppsV1().Deployments("default").Create(ctx, windowDeployment(), metav1.CreateOptions{})
	return "http://" + service.Spec.ClusterIP, err
}

func secret(content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shown"}, Data: map[string][]byte{"word": []byte(content)}}
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func TestAPodOfAKnownImageIsAProcessWithItsSecretsTokenAndService(t *testing.T) {
	w := newWorld(t, map[string]string{"registry.example/tools": programs(t, "kubernetes")["kubectl"]}, quick(t, nil))
	client := w.start()
	ctx := t.Context()
	url, err := createWindow(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	w.eventually(20*time.Second, "the pod says which Secret it waits for", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
			return fmt.Errorf("no status yet: %w", err)
		}
		pod = pods.Items[0]
		if waiting := pod.Status.ContainerStatuses[0].State.Waiting; waiting == nil || !strings.Contains(waiting.Message, "secret default/shown not found") {
			return fmt.Errorf("state %+v", pod.Status.ContainerStatuses[0].State)
		}
		return nil
	})
	if _, err := get(ctx, url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a Service without a ready endpoint answers %v", err)
	}
	if _, err := client.CoreV1().Secrets("default").Create(ctx, secret("first"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.available(client, "default", "window", 20*time.Second)
	ready := time.Now()
	w.eventually(2*time.Second, "the Service leads to the mounted Secret", func(ctx context.Context) error {
		shown, err := get(ctx, url+"/files/word")
		if err == nil && shown != "first" {
			err = fmt.Errorf("it is %q", shown)
		}
		return err
	})
	// Nothing happens to the pod any more that its kubelet would look at it for, but for what it has listed already.
	time.Sleep(500 * time.Millisecond)
	if _, err := client.CoreV1().Secrets("default").Update(ctx, secret("second"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(10*time.Second, "the mounted Secret has changed", func(ctx context.Context) error {
		shown, err := get(ctx, url+"/files/word")
		if err == nil && shown != "second" {
			err = fmt.Errorf("it is %q", shown)
		}
		return err
	})
	// A minute, less the second in which the pod was seen to be ready.
	if took, least := time.Since(ready), w.options.Profile.Scaled(59*time.Second); took < least {
		t.Errorf("it has changed %s after the pod was ready, and no kubelet looks at it before %s", took, least)
	}
	if _, err := get(ctx, url+"/"+pod.Name+"/api/v1/namespaces/default/pods"); err != nil {
		t.Errorf("the API through the pod's token: %v", err)
	}
	if body, err := get(ctx, url+"/"+pod.Name+"/api/v1/namespaces/default/secrets"); err == nil {
		t.Errorf("RBAC lets the pod read Secrets: %s", body)
	}

	printed, err := client.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || !strings.Contains(string(printed), "Starting to serve on [::]:8001") {
		t.Errorf("what the container printed: %q, %v", printed, err)
	}

	// A process that ends is started again in the same pod.
	program := w.options.Binaries.Images["registry.example/tools"]
	for _, pid := range processesOf(t, program) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(10*time.Second, "the container was restarted", func(ctx context.Context) error {
		now, err := client.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := now.Status.ContainerStatuses[0]
		if status.RestartCount != 1 || !status.Ready || status.LastTerminationState.Terminated == nil || status.LastTerminationState.Terminated.ExitCode != 137 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})

	if err := client.AppsV1().Deployments("default").Delete(ctx, "window", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(10*time.Second, "the process is gone", func(context.Context) error {
		if left := processesOf(t, program); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
	w.eventually(5*time.Second, "the pod is gone", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("it is not")
		}
		return err
	})
}

// processesOf finds what this process runs a program as.
func processesOf(t *testing.T, program string) []int {
	t.Helper()
	want, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, pid := range children(t, os.Getpid()) {
		if info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(info, want) {
			found = append(found, pid)
		}
	}
	return found
}

func children(t *testing.T, of int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}

const doomedVariable = "CASTLE_KUBE_TEST_DOOMED"

// doomedWorld is what a process that will be killed is told.
type doomedWorld struct {
	Folder   string
	Binaries Binaries
	Profile  profile.Profile
	Config   Config
}

// doomed runs a world until it is killed. It says when everything runs.
func doomed() {
	var told doomedWorld
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fail(json.Unmarshal([]byte(os.Getenv(doomedVariable)), &told))
	plane, err := New(Options{Folder: told.Folder, Binaries: told.Binaries, Profile: told.Profile})
	fail(err)
	ctx := context.Background()
	fail(plane.ControlPlaneUp(ctx, cp1.Name, cp1.Address, told.Config))
	plane.NodeUp(wk1)
	client, err := kubernetes.NewForConfig(plane.Admin())
	fail(err)
	_, err = client.CoreV1().Secrets("default").Create(ctx, secret("kept"), metav1.CreateOptions{})
	fail(err)
	url, err := createWindow(ctx, client)
	fail(err)
	for {
		if shown, err := get(ctx, url+"/files/word"); err == nil && shown == "kept" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println(url)
	select {}
}

func TestNothingOutlivesAKilledWorldAndItsPodsComeBack(t *testing.T) {
	w := describe(t, map[string]string{"registry.example/tools": programs(t, "kubernetes")["kubectl"]}, quick(t, nil))
	told, err := json.Marshal(doomedWorld{w.options.Folder, w.options.Binaries, w.options.Profile, w.config})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, "/proc/self/exe")
	victim.Env = append(os.Environ(), doomedVariable+"="+string(told))
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, err := output.Read(line)
	if err != nil {
		t.Fatalf("the world did not come up: %v", err)
	}
	url := strings.TrimSpace(string(line[:n]))
	family := children(t, victim.Process.Pid)
	if len(family) != 5 {
		t.Errorf("%d processes run, want 4 of the control plane and one pod", len(family))
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	w.eventually(2*time.Second, "all processes of the killed world are gone", func(context.Context) error {
		for _, pid := range family {
			if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(state), ") Z") {
				return fmt.Errorf("process %d: %s", pid, state)
			}
		}
		return nil
	})

	w.power()
	t.Cleanup(w.Close)
	w.controlPlaneUp(cp1)
	w.NodeUp(wk1)
	w.eventually(20*time.Second, "the pod serves again", func(ctx context.Context) error {
		shown, err := get(ctx, url+"/files/word")
		if err == nil && shown != "kept" {
			err = fmt.Errorf("it is %q", shown)
		}
		return err
	})
}

func TestInitContainersRunFirstAndJobsEnd(t *testing.T) {
	w := newWorld(t, map[string]string{"registry.example/tools": programs(t, "kubernetes")["kubectl"]}, quick(t, nil))
	client := w.start()
	ctx := t.Context()
	run := func(name string, restart corev1.RestartPolicy, arg string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			RestartPolicy:  restart,
			InitContainers: []corev1.Container{{Name: "first", Image: windowImage, Command: []string{"/bin/kubectl", "version"}, Args: []string{arg}}},
			Containers:     []corev1.Container{{Name: "app", Image: "registry.example/blog:1"}},
		}}
	}
	for _, pod := range []*corev1.Pod{
		run("good", corev1.RestartPolicyAlways, "--client"),
		run("bad", corev1.RestartPolicyNever, "--no-such-flag"),
		run("again", corev1.RestartPolicyAlways, "--no-such-flag"),
	} {
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name, what string, right func(corev1.PodStatus) bool) {
		t.Helper()
		w.eventually(20*time.Second, name+" "+what, func(ctx context.Context) error {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil && !right(pod.Status) {
				err = fmt.Errorf("phase %s, init containers %+v", pod.Status.Phase, pod.Status.InitContainerStatuses)
			}
			return err
		})
	}
	expect("good", "runs after its init container", func(s corev1.PodStatus) bool {
		return s.Phase == corev1.PodRunning && s.InitContainerStatuses[0].State.Terminated.ExitCode == 0 && s.ContainerStatuses[0].Ready
	})
	expect("bad", "has failed", func(s corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
	expect("again", "tries its init container again and again", func(s corev1.PodStatus) bool {
		return s.Phase == corev1.PodPending && s.InitContainerStatuses[0].RestartCount > 1
	})
	_, err := client.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "done"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "registry.example/job:1"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.eventually(20*time.Second, "the Job is complete", func(ctx context.Context) error {
		job, err := client.BatchV1().Jobs("default").Get(ctx, "done", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("status %+v", job.Status)
		}
		return err
	})
}
