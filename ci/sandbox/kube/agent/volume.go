//go:build linux

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// What comes from the API into a volume is brought up to date when a kubelet looks at the pod, and not when it changes: MarkRemountRequired in
// pkg/kubelet/volumemanager of Kubernetes 1.36. It looks when a container has started or ended or a probe's result has changed, which it finds by
// listing all containers once a second (genericPlegRelistPeriod in pkg/kubelet/kubelet.go); else after a minute and up to half of one more
// (SyncFrequency, and workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const (
	relistPeriod = time.Second
	syncPeriod   = time.Minute
	// shortestSync is what a scaled period never falls below: secrets are read over and over.
	shortestSync = 500 * time.Millisecond
)

// nextSync is how long a pod is left alone to which nothing happens.
func (a *Agent) nextSync() time.Duration {
	return max(shortestSync, a.options.Profile.Scaled(wait.Jitter(syncPeriod, 0.5)))
}

// volumes are the volumes of one pod.
type volumes struct {
	worker  *worker
	folder  string
	memory  string                       // for what comes from the API, as a kubelet keeps it
	written map[string]map[string][]byte // by volume, by path; what is on disk
	tokens  map[string]token             // by volume and path
	version int
}

type token struct {
	value string
	renew time.Time
}

// path is the folder of a volume.
func (v *volumes) path(pod *corev1.Pod, volume *corev1.Volume) string {
	switch disk := v.worker.agent.options.Folder; {
	case volume.HostPath != nil:
		return filepath.Join(disk, "nodes", pod.Spec.NodeName, filepath.Clean("/"+volume.HostPath.Path))
	case volume.PersistentVolumeClaim != nil:
		return filepath.Join(disk, "claims", pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
	case published(volume):
		return filepath.Join(v.memory, volume.Name)
	default:
		return filepath.Join(v.folder, volume.Name)
	}
}

// sync makes every volume what it should hold now.
func (v *volumes) sync(ctx context.Context, connected *api, pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		folder := v.path(pod, volume)
		if !published(volume) {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			if volume.EmptyDir != nil {
				if err := os.Chmod(folder, 0o777); err != nil {
					return err
				}
			}
			continue
		}
		files := map[string][]byte{}
		if err := v.publish(ctx, connected, pod, volume, files); err != nil {
			return fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		if before, has := v.written[volume.Name]; has && maps.EqualFunc(before, files, bytes.Equal) {
			continue
		}
		v.version++
		if err := writeAtOnce(folder, files, v.version); err != nil {
			return err
		}
		v.written[volume.Name] = files
	}
	return nil
}

// published tells whether a volume's content comes from the API.
func published(volume *corev1.Volume) bool {
	return volume.Secret != nil || volume.ConfigMap != nil || volume.Projected != nil || volume.DownwardAPI != nil
}

func (v *volumes) publish(ctx context.Context, connected *api, pod *corev1.Pod, volume *corev1.Volume, files map[string][]byte) error {
	switch {
	case volume.Secret != nil:
		data, err := secretData(connected, pod.Namespace, volume.Secret.SecretName)
		return project(files, data, err, volume.Secret.Items, volume.Secret.Optional)
	case volume.ConfigMap != nil:
		data, err := configMapData(connected, pod.Namespace, volume.ConfigMap.Name)
		return project(files, data, err, volume.ConfigMap.Items, volume.ConfigMap.Optional)
	case volume.DownwardAPI != nil:
		return v.downward(pod, volume.DownwardAPI.Items, files)
	}
	for _, source := range volume.Projected.Sources {
		var err error
		switch {
		case source.Secret != nil:
			data, missing := secretData(connected, pod.Namespace, source.Secret.Name)
			err = project(files, data, missing, source.Secret.Items, source.Secret.Optional)
		case source.ConfigMap != nil:
			data, missing := configMapData(connected, pod.Namespace, source.ConfigMap.Name)
			err = project(files, data, missing, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.DownwardAPI != nil:
			err = v.downward(pod, source.DownwardAPI.Items, files)
		case source.ServiceAccountToken != nil:
			var value string
			value, err = v.token(ctx, connected, pod, volume.Name, source.ServiceAccountToken)
			files[source.ServiceAccountToken.Path] = []byte(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// project adds all keys, or the wanted ones under their paths.
func project(files, data map[string][]byte, missing error, items []corev1.KeyToPath, optional *bool) error {
	if missing != nil {
		if isTrue(optional) {
			return nil
		}
		return missing
	}
	if len(items) == 0 {
		maps.Copy(files, data)
		return nil
	}
	for _, item := range items {
		value, has := data[item.Key]
		if !has && !isTrue(optional) {
			return &missingError{"key " + item.Key}
		}
		if has {
			files[item.Path] = value
		}
	}
	return nil
}

func (v *volumes) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, files map[string][]byte) error {
	for _, item := range items {
		if item.FieldRef == nil {
			continue
		}
		value, err := v.worker.field(pod, item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		files[item.Path] = []byte(value)
	}
	return nil
}

// token asks the API server for a service account's token that is bound to the pod, and again when most of its life is
// over.
func (v *volumes) token(ctx context.Context, connected *api, pod *corev1.Pod, volume string, want *corev1.ServiceAccountTokenProjection) (string, error) {
	key := volume + "/" + want.Path
	if have := v.tokens[key]; time.Now().Before(have.renew) {
		return have.value, nil
	}
	seconds := int64(3600)
	if want.ExpirationSeconds != nil {
		seconds = *want.ExpirationSeconds
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if want.Audience != "" {
		request.Spec.Audiences = []string{want.Audience}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := connected.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		if have := v.tokens[key]; have.value != "" {
			return have.value, nil // the old one is good for a while
		}
		return "", fmt.Errorf("token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	v.tokens[key] = token{got.Status.Token, time.Now().Add(time.Until(got.Status.ExpirationTimestamp.Time) * 8 / 10)}
	return got.Status.Token, nil
}

// writeAtOnce replaces a volume's files all at the same moment, in the layout that programs which watch mounted secrets
// know: each name is a link through "..data", and that link is what changes.
func writeAtOnce(folder string, files map[string][]byte, version int) error {
	next := "..v" + strconv.Itoa(version)
	if err := os.MkdirAll(filepath.Join(folder, next), 0o755); err != nil {
		return err
	}
	names := map[string]bool{}
	for name, data := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("path %q leaves the volume", name)
		}
		file := filepath.Join(folder, next, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
		top, _, _ := strings.Cut(name, "/")
		names[top] = true
	}
	current := filepath.Join(folder, "..data")
	before, err := os.Readlink(current)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(next, current+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(current+"_tmp", current); err != nil {
		return err
	}
	for name := range names {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, "..") && !names[name] {
			_ = os.Remove(filepath.Join(folder, name))
		}
	}
	if before != "" && before != next {
		return os.RemoveAll(filepath.Join(folder, before))
	}
	return nil
}
