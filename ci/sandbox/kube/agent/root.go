//go:build linux

package agent

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/sandbox/kube/podnet"
)

// root is what a container's process sees as its file system: as little as the image of a static Go program has, the
// program, and the pod's volumes.
type root struct {
	folder   string // a mount point
	program  string // on this machine
	command  string // where the container finds it
	hostname string
	network  *podnet.Pod       // nil: the node's own
	files    map[string]string // generated files by path
	mounts   []mount
	readOnly bool
}

type mount struct {
	source, target string
	readOnly       bool
}

// enter runs on the thread that starts the process. Every mount is the process's own and goes with it.
func (r *root) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Sethostname([]byte(r.hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", r.folder, "tmpfs", unix.MS_NOSUID, "mode=755,size=64m"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	for _, name := range []string{"tmp", "var/tmp"} {
		folder := filepath.Join(r.folder, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(folder, 0o1777); err != nil {
			return err
		}
	}
	for name, content := range r.files {
		file := filepath.Join(r.folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	mounts := append([]mount{{"/proc", "/proc", false}, {"/dev", "/dev", false}, {r.program, r.command, true}}, r.mounts...)
	if _, err := os.Stat("/etc/ssl/certs"); err == nil {
		mounts = append(mounts, mount{"/etc/ssl/certs", "/etc/ssl/certs", true})
	}
	for _, m := range mounts {
		if err := r.bind(m); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if r.readOnly {
		if err := unix.Mount("", r.folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, ""); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	if r.network != nil {
		return r.network.Enter()
	}
	return nil
}

func (r *root) bind(m mount) error {
	target := filepath.Join(r.folder, path.Clean("/"+m.target))
	info, err := os.Stat(m.source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var file *os.File
		if file, err = os.OpenFile(target, os.O_CREATE, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(m.source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if m.readOnly {
		return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	return nil
}

// root puts together what a container sees.
func (w *worker) root(pod *corev1.Pod, spec *corev1.Container, program string, env *environment) *root {
	options := w.agent.options
	r := &root{
		folder: filepath.Join(w.folder, "root-"+spec.Name), program: program, hostname: pod.Name, network: w.network,
		command: "/entrypoint/" + filepath.Base(program),
		files: map[string]string{
			"/etc/hosts":         fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\n", w.ip, pod.Name),
			"/etc/resolv.conf":   fmt.Sprintf("search %s.svc.%s svc.%[2]s %[2]s\nnameserver %s\noptions ndots:5\n", pod.Namespace, options.Domain, options.DNS),
			"/etc/nsswitch.conf": "hosts: files dns\n",
			"/etc/passwd":        "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
			"/etc/group":         "root:x:0:\nnonroot:x:65532:\n",
		},
	}
	if len(spec.Command) > 0 && path.IsAbs(spec.Command[0]) {
		r.command = path.Clean(spec.Command[0])
	}
	if security := spec.SecurityContext; security != nil {
		r.readOnly = isTrue(security.ReadOnlyRootFilesystem)
	}
	for _, m := range spec.VolumeMounts {
		for i := range pod.Spec.Volumes {
			volume := &pod.Spec.Volumes[i]
			if volume.Name != m.Name {
				continue
			}
			below := m.SubPath
			if m.SubPathExpr != "" {
				below = env.expand(m.SubPathExpr)
			}
			source := filepath.Join(w.volumes.path(pod, volume), path.Clean("/"+below))
			r.mounts = append(r.mounts, mount{source, m.MountPath, m.ReadOnly || published(volume)})
		}
	}
	return r
}
