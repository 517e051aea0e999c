package daggerengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/setup/gotool"
)

// start serves the mirror and returns its part of engine.toml. What ends the mirror later is sent to ended.
func (m *Mirror) start(ctx context.Context, ended chan<- error) ([]byte, error) {
	addresses := make(chan net.Addr, 1)
	failed := make(chan error, 1)
	go func() {
		err := m.Serve(ctx, func(address net.Addr) { addresses <- address })
		failed <- err
		ended <- fmt.Errorf("the mirror ended: %w", err)
	}()
	select {
	case address := <-addresses:
		return m.Config(address.String())
	case err := <-failed:
		return nil, fmt.Errorf("serve the mirror: %w", err)
	}
}

// Run is the supervising process: it serves the mirror, when there is one, starts the engine in its own mount
// namespace, and ends when the engine does or when it is told to. inside is the command that calls Enter.
func (e Engine) Run(ctx context.Context, inside []string, mirror *Mirror) error {
	if err := supported(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	config := []byte(fmt.Sprintf("[worker.oci]\n  cniBinaryPath = %q\n", e.files().cni))
	ended := make(chan error, 1)
	if mirror != nil {
		part, err := mirror.start(ctx, ended)
		if err != nil {
			return err
		}
		config = append(config, part...)
	}
	if err := os.WriteFile(e.folder("engine.toml"), config, 0o644); err != nil {
		return err
	}
	// A socket of an engine that was killed would look like this one's.
	if err := os.Remove(e.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	environment, err := e.environment()
	if err != nil {
		return err
	}
	own, err := e.network()
	if err != nil {
		return err
	}
	own.remove() // one that was killed has left it behind, with addresses that would look taken

	// Not CommandContext: that kills, and the engine is to be asked.
	command := exec.Command(inside[0], inside[1:]...)
	command.Env = environment
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	// Go makes the new namespace's mounts private. When this process dies, however it dies, the engine is told to end.
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM, Setpgid: true}
	exited := make(chan error, 1)
	if err := startLocked(command, exited); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	defer own.remove()
	if err := e.process().Adopt(ctx, command.Process.Pid); err != nil {
		return err
	}
	var failure error
	select {
	case err := <-exited:
		return fmt.Errorf("the engine ended: %w", err)
	case failure = <-ended:
	case <-ctx.Done():
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(stopGrace - 5*time.Second):
		_ = command.Process.Kill()
		<-exited
	}
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	return failure
}

// environment moves the engine's files into its folder; see the distconsts of its recipe.
func (e Engine) environment() ([]string, error) {
	recipe, err := gotool.Load("dagger")
	if err != nil {
		return nil, err
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return nil, err
	}
	digest, err := os.ReadFile(e.files().sdkDigest)
	if err != nil {
		return nil, fmt.Errorf("%w: start the engine by `castle engine up`", err)
	}
	return append(os.Environ(),
		"PATH="+e.files().bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"CASTLE_ENGINE_RUNC="+runc,
		"CASTLE_ENGINE_INIT="+filepath.Join(e.tools().Dir(recipe), "dagger-init"),
		"CASTLE_ENGINE_STATE="+e.folder("state"),
		"CASTLE_ENGINE_CONTENT="+e.files().content,
		"DAGGER_GO_SDK_MANIFEST_DIGEST="+string(digest),
	), nil
}

// extraCAs is where the engine looks for the host's own CA certificates, to install them into each container before
// each command and to remove them after it.
const extraCAs = "/usr/local/share/ca-certificates"

// Enter runs inside the new mount namespace: it puts the engine's folders in place and becomes the engine. With
// mirrored, the images are stand-ins, which hold the host's CA certificates already: the engine is spared installing
// them, which takes longer than most commands.
func (e Engine) Enter(mirrored bool) error {
	recipe, err := gotool.Load("dagger")
	if err != nil {
		return err
	}
	if err := keepResolvConf(e.folder("run")); err != nil {
		return err
	}
	const leases = "/var/lib/cni"
	if err := os.MkdirAll(leases, 0o755); err != nil {
		return err
	}
	mounts := map[string]string{"/run": e.folder("run"), leases: e.folder("cni")}
	if _, err := os.Stat(extraCAs); err == nil && mirrored {
		mounts[extraCAs] = e.folder("no-certificates")
	}
	for target, source := range mounts {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s over %s: %w", source, target, err)
		}
	}
	// The parent-death signal belongs to the thread that becomes the engine, which need not be the one that Run set it
	// for.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	own, err := e.network()
	if err != nil {
		return err
	}
	cidr, err := own.free()
	if err != nil {
		return err
	}
	program := filepath.Join(e.tools().Dir(recipe), "engine")
	return unix.Exec(program, []string{program,
		"--config", e.folder("engine.toml"),
		"--network-name", own.name, "--network-cidr", cidr.String(),
	}, os.Environ())
}

// keepResolvConf copies the host's resolv.conf into the folder that hides /run, when it is a link into /run
// (systemd-resolved).
func keepResolvConf(run string) error {
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil || !strings.HasPrefix(target, "/run/") {
		return nil // a plain file stays visible
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	copied := filepath.Join(run, strings.TrimPrefix(target, "/run/"))
	if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
		return err
	}
	return os.WriteFile(copied, data, 0o644)
}
