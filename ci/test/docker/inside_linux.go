package docker

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The names under which the test binary is called for something else than tests, and the files of a daemon's folder
// that both sides know.
const (
	insideName  = "castle-dockerd"
	wrapperName = "castle-runc"

	configName = "daemon.json"
	logName    = "dockerd.log"
)

// Main returns at once in a test run. Called under one of the other names, it does what that name is for and ends the
// process.
func Main() {
	var err error
	switch filepath.Base(os.Args[0]) {
	case insideName:
		err = becomeDockerd(os.Args[1])
	case wrapperName:
		err = becomeRunc(os.Args[1:])
	default:
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(1)
}

// becomeDockerd runs as the first process of the new namespaces. It waits for the network, mounts what belongs to the
// namespaces, and becomes dockerd.
func becomeDockerd(folder string) error {
	dockerd, err := exec.LookPath("dockerd")
	if err != nil {
		return err
	}
	networked := os.NewFile(3, "networked")
	if _, err := io.ReadAll(networked); err != nil {
		return err
	}
	networked.Close()
	if err := mountOwn(folder); err != nil {
		return err
	}
	return unix.Exec(dockerd, []string{dockerd, "--config-file=" + filepath.Join(folder, configName)}, os.Environ())
}

// mountOwn hides the machine's /proc, /run and resolver. /run holds the sockets of the machine's own containerd and
// Docker, whose names are fixed.
func mountOwn(folder string) error {
	resolver := filepath.Join(folder, "resolv.conf")
	if err := os.WriteFile(resolver, []byte("nameserver "+nameserver+"\n"), 0o644); err != nil {
		return err
	}
	// On some machines it is a link to a file in /run.
	resolvConf, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	if _, err := os.Stat(resolvConf); os.IsNotExist(err) {
		if err := os.MkdirAll(filepath.Dir(resolvConf), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(resolvConf, nil, 0o644); err != nil {
			return err
		}
	}
	if err := unix.Mount(resolver, resolvConf, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount over %s: %w", resolvConf, err)
	}
	return nil
}
