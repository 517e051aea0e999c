//go:build linux

package agent

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// kubeletFolder is the one whose mounts Talos lets a kubelet share by itself (internal/app/machined/pkg/system/services/kubelet.go of v1.13).
const kubeletFolder = "/var/lib/kubelet"

// create waits until the container can be made: where it is to share mounts of a folder with its node in both directions, that has to be one
// whose mounts are shared. Reasons, texts and times are those of ensureShared in internal/cri/opts/spec_linux_opts.go of containerd v2.1 and of
// a kubelet of Kubernetes v1.36. That no other folder of a node is shared was read nowhere, and is the stricter of the two readings of Talos.
func (c *container) create(ctx context.Context) error {
	a := c.worker.agent
	for {
		folder := c.unshared()
		if folder == "" {
			return ctx.Err()
		}
		message := fmt.Sprintf("failed to generate container %q spec: failed to apply OCI options: path %q is mounted on %q but it is not a shared mount", c.spec.Name, folder, "/var")
		c.set(func() {
			c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: message}}
		})
		a.event(c.worker.object(), corev1.EventTypeWarning, "Failed", "Error: "+message)
		if err := c.pause(ctx, max(a.options.Profile.Scaled(firstBackoff), shortestBackoff)); err != nil {
			return err
		}
	}
}

// unshared is a folder of the node that the container would share mounts of, and cannot; empty where there is none.
func (c *container) unshared() string {
	a := c.worker.agent
	a.mu.Lock()
	shared := append([]string{kubeletFolder}, c.worker.node.Shared...)
	a.mu.Unlock()
	pod := c.worker.object()
	for _, mount := range c.spec.VolumeMounts {
		if mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationBidirectional {
			continue
		}
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name && v.HostPath != nil })
		if at < 0 {
			continue
		}
		folder := path.Clean(pod.Spec.Volumes[at].HostPath.Path)
		if !slices.ContainsFunc(shared, func(one string) bool { return folder == one || strings.HasPrefix(folder, one+"/") }) {
			return folder
		}
	}
	return ""
}
