//go:build linux

package talosnodes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
func (o Options) makeSystem(root string, authority []byte) error {
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
	failed = append(failed, o.putMachined(at("usr/bin/init"), authority), o.putRunc(root))
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

// putRunc takes the machine's own runc with the libraries that it is linked with, and the wrapper before it where root may not all.
func (o Options) putRunc(root string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	libraries, err := librariesOf(runc)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if err := place(library, filepath.Join(root, "usr/lib", filepath.Base(library))); err != nil {
			return err
		}
	}
	program := filepath.Join(root, "usr/bin", inside.RuncName)
	limited, err := inside.Limited()
	if err != nil {
		return err
	}
	if limited {
		if err := place(o.Node, program); err != nil {
			return err
		}
		program = filepath.Join(root, inside.RealRunc)
	}
	return place(runc, program)
}

// place copies a file. Everything in the root file system may be run.
func place(file, at string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(at, data, 0o755)
}

// librariesOf are the shared libraries of a program, by where they really are.
func librariesOf(program string) ([]string, error) {
	said, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		if bytes.Contains(said, []byte("not a dynamic executable")) || bytes.Contains(said, []byte("statically linked")) {
			return nil, nil
		}
		return nil, fmt.Errorf("ldd %s: %w: %s", program, err, said)
	}
	var libraries []string
	for lines := bufio.NewScanner(bytes.NewReader(said)); lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			if filepath.IsAbs(word) {
				libraries = append(libraries, word)
			}
		}
	}
	return libraries, nil
}
