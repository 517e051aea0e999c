//go:build linux

package talosnodes

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"tazlab.net/castle/ci/sandbox/talosnodes/inside"
)

// folders are those of Talos's image that something is mounted at or written into, and its links: the Dockerfile of siderolabs/talos 1.13.
var (
	folders = []string{
		"usr/bin", "usr/lib/modules", "usr/etc", "usr/share/spdx", "usr/share/zoneinfo/Etc", "usr/libexec/kubernetes", "usr/local/share", "usr/local/lib/kubelet/credentialproviders",
		"dev", "proc", "sys", "run", "tmp", "var", "system", "opt/cni/bin", "opt/containerd/bin", "opt/containerd/lib", "mnt", "root", ".extra", "boot/EFI",
		"etc/iscsi", "etc/nvme", "etc/containerd", "etc/cri/conf.d/hosts", "etc/kubernetes/manifests", "etc/cni/net.d", "etc/ssl/certs",
		"etc/selinux/targeted/contexts/files", "etc/lvm",
	}
	links = map[string]string{
		"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib",
		"usr/bin/poweroff": "init", "usr/bin/shutdown": "init", "usr/bin/reboot": "init", "usr/bin/dashboard": "init",
		"etc/localtime": "/usr/share/zoneinfo/Etc/UTC", "etc/ssl/certs/ca-certificates": "ca-certificates.crt", "etc/pki": "/etc/ssl",
		"etc/ca-certificates": "/etc/ssl", "usr/share/ca-certificates": "/etc/ssl", "usr/local/share/ca-certificates": "/etc/ssl",
	}
	// blank files are mounted over by Talos or by Boot.
	blank = []string{
		"extensions.yaml", "resolv.conf", "hosts", "hostname", "machine-id", "cri/conf.d/cri.toml", "cri/conf.d/01-registries.part", "cri/conf.d/20-customization.part",
		"cri/conf.d/base-spec.json", "ssl/certs/ca-certificates.crt", "selinux/targeted/contexts/files/file_contexts", "iscsi/initiatorname.iscsi",
		"nvme/hostid", "nvme/hostnqn",
	}
	// kept are what the recipe of talos has beside machined, by where it stands in the root file system.
	kept = map[string]string{
		"etc/containerd/config.toml": "containerd.toml", "etc/cri/containerd.toml": "cri-containerd.toml", "etc/cri/conf.d/00-base.part": "cri-plugin.part",
		"etc/nfsmount.conf": "nfsmount.conf", "etc/lvm/lvm.conf": "lvm.conf", "etc/os-release": "os-release", "usr/share/zoneinfo/Etc/UTC": "UTC",
	}
	texts = map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n", "etc/group": "root:x:0:\n",
		"usr/etc/in-container": "true\n", // ContainerMarkerFilePath of Talos 1.13
	}
)

// makeSystem puts Talos's root file system together in an empty folder: out of the official image, or of what was built.
func (o Options) makeSystem(root string, authority []byte, wrapped bool) error {
	if o.official() {
		return errors.Join(os.CopyFS(root, os.DirFS(o.Talos)), furnish(root), o.putMachined(root, machined, authority), o.wrapRunc(root, wrapped))
	}
	failed := []error{furnish(root)}
	for name, file := range kept {
		failed = append(failed, place(filepath.Join(o.Talos, "image", file), filepath.Join(root, name)))
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2"} {
		failed = append(failed, place(filepath.Join(o.Containerd, program), filepath.Join(root, "usr/bin", program)))
	}
	plugins, err := o.Components.plugins()
	failed = append(failed, err, o.putMachined(root, "machined", authority), o.putRunc(root), o.wrapRunc(root, wrapped), putAll(root, plugins))
	return errors.Join(failed...)
}

// official tells whether Talos is the unpacked image of its publisher.
func (o Options) official() bool {
	_, err := os.Stat(filepath.Join(o.Talos, machined))
	return err == nil
}

// furnish makes folders, links and files where they are not there yet. The official image lacks those that Docker makes.
func furnish(root string) error {
	var failed []error
	missing := func(name string) (at string, is bool) {
		at = filepath.Join(root, filepath.FromSlash(name))
		_, err := os.Lstat(at)
		return at, errors.Is(err, fs.ErrNotExist)
	}
	for _, folder := range folders {
		failed = append(failed, os.MkdirAll(filepath.Join(root, filepath.FromSlash(folder)), 0o755))
	}
	for name, target := range links {
		if at, is := missing(name); is {
			failed = append(failed, os.Symlink(target, at))
		}
	}
	write := func(name, text string) {
		if at, is := missing(name); is {
			failed = append(failed, os.WriteFile(at, []byte(text), 0o644))
		}
	}
	for _, name := range blank {
		write("etc/"+name, "")
	}
	for name, text := range texts {
		write(name, text)
	}
	return errors.Join(failed...)
}

// machined is where Talos's program is in its image.
const machined = "usr/bin/init"

// putMachined has the program of the folder of Talos trust the authority, and puts it into the root file system.
func (o Options) putMachined(root, file string, authority []byte) error {
	program, err := os.ReadFile(filepath.Join(o.Talos, file))
	if err != nil {
		return err
	}
	trusting, err := trust(program, authority)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, machined), trusting, 0o755)
}

// runc is where a node's is.
var runc = path.Join("usr/bin", inside.RuncName)

// putRunc takes the machine's own runc.
func (o Options) putRunc(root string) error {
	file, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return putAll(root, files{runc: file})
}

// wrapRunc puts the wrapper before runc, where containers have to be made otherwise than they are asked for.
func (o Options) wrapRunc(root string, wrapped bool) error {
	if !wrapped {
		return nil
	}
	at := filepath.Join(root, runc)
	return errors.Join(os.Rename(at, filepath.Join(root, inside.RealRunc)), place(o.Node, at))
}

// putAll puts programs into the root file system, with the libraries that they are linked with.
func putAll(root string, programs files) error {
	all, err := withLibraries(programs)
	if err != nil {
		return err
	}
	for name, file := range all {
		if err := place(file, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// place copies a file. Everything in the root file system may be run.
func place(file, at string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(at, data, 0o755)
}
