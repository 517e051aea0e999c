//go:build linux

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/test/tell"
)

// proxy is where the world lets castle in, on the loopback interface of its own network namespace.
const proxy = "http://127.0.0.1:3128"

// patience is how long a call of castle may take.
const patience = 10 * time.Minute

// world is a proving ground of one test, in network and mount namespaces of its own.
type world struct {
	t       *testing.T
	kit     kit
	folder  string // what belongs to this test
	disk    string // the folder of what castle writes
	live    string // terragrunt/live/sandbox, a copy
	cluster *config.Cluster
	store   *store // nil where the states are in a folder
	scale   string
	profile string
	flags   []string // of each call
	nodes   []string // flags of a world with real ones
	blog    v1.Image // what pushImage pushes

	patience time.Duration // with a call of castle; 0: the constant

	mutex   sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	shown   []string // everything that castle printed
}

// newWorld makes a world that is not yet on.
func newWorld(t *testing.T, profile, scale string, changes ...change) *world {
	t.Helper()
	w := &world{t: t, kit: tools(t), folder: t.TempDir(), profile: profile, scale: scale, blog: empty.Image}
	w.live = w.copyLive("terragrunt", changes...)
	var err error
	if w.cluster, err = config.Load(w.live); err != nil {
		t.Fatal(err)
	}
	w.disk = w.folder
	w.linkPlugins()
	return w
}

// linkPlugins: OpenTofu looks for providers in a home of its own, which castle has in the folder for temporary files.
func (w *world) linkPlugins() {
	w.t.Helper()
	plugins := filepath.Join(w.temp(), ".terraform.d")
	if err := errors.Join(os.MkdirAll(plugins, 0o755), os.Symlink(w.kit.plugins, filepath.Join(plugins, "plugins"))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dir() string   { return filepath.Join(w.folder, "world") }
func (w *world) temp() string  { return filepath.Join(w.disk, "tmp") }
func (w *world) state() string { return filepath.Join(w.disk, "state") }

// on starts the world with faults, and waits until it lets castle in.
func (w *world) on(faults ...string) {
	w.t.Helper()
	log, err := os.OpenFile(w.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"serve", "--cluster=" + w.live, "--dir=" + w.dir(), "--binaries=" + w.kit.binaries,
		"--listen=" + strings.TrimPrefix(proxy, "http://"), "--profile=" + w.profile, "--time-scale=" + w.scale}
	args = append(args, w.nodes...)
	for _, fault := range faults {
		args = append(args, "--fault="+fault)
		tell.Fault(w.t, "%s", fault)
	}
	command := exec.Command(filepath.Join(w.kit.path, "castle-sandbox"), args...)
	command.Stdout, command.Stderr = log, log
	// The process may not outlive the tests, whatever ends them.
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	ended, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal comes when the thread ends that started it
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		w.t.Fatalf("start a world in namespaces of its own: %v", err)
	}
	w.process, w.ended = command, ended
	w.t.Cleanup(func() {
		if w.t.Failed() && w.process == command {
			select {
			case <-ended:
				w.t.Logf("the world has ended, with the words\n%s", w.lastWords())
			default:
				w.t.Logf("the world says\n%s", w.lastWords())
			}
		}
		w.stop(ended, command.Process.Pid, syscall.SIGTERM)
	})
	w.until(3*time.Minute, "the world is on", func() (string, bool) {
		select {
		case <-ended:
			w.t.Fatalf("the world ended:\n%s", w.log())
		default:
		}
		connection, err := w.dial(context.Background(), "tcp", strings.TrimPrefix(proxy, "http://"))
		if err != nil {
			return err.Error(), false
		}
		return "", connection.Close() == nil
	})
}

// off ends the world, in order with SIGTERM, or as a power cut would with SIGKILL.
func (w *world) off(signal syscall.Signal) {
	w.t.Helper()
	if signal == syscall.SIGKILL {
		tell.Fault(w.t, "a power cut of the whole world")
	}
	w.stop(w.ended, w.process.Process.Pid, signal)
}

func (w *world) stop(ended <-chan struct{}, pid int, signal syscall.Signal) {
	select {
	case <-ended:
		return
	default:
		_ = syscall.Kill(pid, signal)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		w.t.Errorf("the world does not end after %s", signal)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-ended
	}
}

func (w *world) logFile() string { return filepath.Join(w.folder, "world.log") }

func (w *world) log() string {
	data, err := os.ReadFile(w.logFile())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// lastWords are the end of the world's log.
func (w *world) lastWords() string {
	log := w.log()
	return log[max(0, len(log)-4000):]
}

// dial connects within the world's network.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	done := make(chan result, 1)
	pid := w.process.Process.Pid
	go func() {
		// The thread goes with the goroutine: nothing else ever runs in that namespace.
		runtime.LockOSThread()
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer namespace.Close()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		dialer := net.Dialer{Timeout: 5 * time.Second}
		connection, err := dialer.DialContext(ctx, network, address)
		done <- result{connection, err}
	}()
	r := <-done
	return r.connection, r.err
}

// until asks every 50 ms whether something is so, and fails the test with what was seen last.
func (w *world) until(limit time.Duration, what string, look func() (seen string, done bool)) {
	w.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		seen, done := look()
		if done {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s; last seen: %s", limit, what, seen)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
