//go:build linux

package talosnodes

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

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

// makeSystem puts Talos's root file system together in an empty folder.
func (o Options) makeSystem(root string, authority []byte, wrapped bool) error {
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	var failed []error
	for _, folder := range folders {
		failed = append(failed, os.MkdirAll(at(folder), 0o755))
	}
	for name, target := range links {
		failed = append(failed, os.Symlink(target, at(name)))
	}
	for _, name := range blank {
		failed = append(failed, os.WriteFile(at("etc/"+name), nil, 0o644))
	}
	for name, text := range texts {
		failed = append(failed, os.WriteFile(at(name), []byte(text), 0o644))
	}
	for name, file := range kept {
		failed = append(failed, place(filepath.Join(o.Talos, "image", file), at(name)))
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2"} {
		failed = append(failed, place(filepath.Join(o.Containerd, program), at("usr/bin/"+program)))
	}
	plugins, err := o.Components.plugins()
	failed = append(failed, err, o.putMachined(at("usr/bin/init"), authority), o.putRunc(root, wrapped), putAll(root, plugins))
	return errors.Join(failed...)
}

func (o Options) putMachined(at string, authority []byte) error {
	machined, err := os.ReadFile(filepath.Join(o.Talos, "machined"))
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(o.Talos, "image", "ca-certificates"))
	if err != nil {
		return err
	}
	trusting, err := trust(machined, list, authority)
	if err != nil {
		return err
	}
	return os.WriteFile(at, trusting, 0o755)
}

// putRunc takes the machine's own runc, and the wrapper before it where containers have to be made otherwise than they are asked for.
func (o Options) putRunc(root string, wrapped bool) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	program := path.Join("usr/bin", inside.RuncName)
	if wrapped {
		if err := place(o.Node, filepath.Join(root, program)); err != nil {
			return err
		}
		program = strings.TrimPrefix(inside.RealRunc, "/")
	}
	return putAll(root, files{program: runc})
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
