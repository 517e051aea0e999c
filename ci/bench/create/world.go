//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// world is a proving ground and the layers of the cluster that is made in it, in a folder of their own.
type world struct {
	shop    *shop
	dir     string
	process *exec.Cmd
	log     string
	ended   chan struct{}
	cluster string // folder of its cluster.yaml
	state   string
	scaled  bool // its time is not a homelab's
}

const (
	worldStart = 3 * time.Minute
	worldEnd   = time.Minute
	proxyURL   = "http://127.0.0.1:3128"
)

// newWorld powers a world on that has nothing in it. Describe may change the copy of the sandbox's layers, its folder.
func (s *shop) newWorld(ctx context.Context, name, kind string, scale float64, describe func(folder string) error) (*world, error) {
	dir, err := os.MkdirTemp(s.work, name+"-*")
	if err != nil {
		return nil, err
	}
	w := &world{shop: s, dir: dir, log: filepath.Join(dir, "world.log"),
		cluster: filepath.Join(dir, "terragrunt", "live", "sandbox"), state: filepath.Join(dir, "state"), scaled: kind != profile.NameHomelab || scale != 1}
	if err := copyLayers(s.terragrunt, filepath.Join(dir, "terragrunt")); err != nil {
		return nil, err
	}
	if describe != nil {
		if err := describe(w.cluster); err != nil {
			return nil, err
		}
	}
	return w, w.start(ctx, kind, scale)
}

// start powers the world on; its log begins anew.
func (w *world) start(ctx context.Context, kind string, scale float64) error {
	log, err := os.Create(w.log)
	if err != nil {
		return err
	}
	defer log.Close()
	w.ended = make(chan struct{})
	w.process = exec.Command(w.shop.sandbox, "serve", "--cluster="+w.cluster, "--dir="+filepath.Join(w.dir, "world"), "--binaries="+w.shop.bin,
		"--listen="+proxyURL[len("http://"):], "--profile="+kind, fmt.Sprintf("--time-scale=%g", scale))
	if w.shop.uplink != "" && kind == profile.NameHomelab {
		w.process.Args = append(w.process.Args, "--fault="+profile.Uplink+"="+w.shop.uplink)
	}
	w.process.Stdout, w.process.Stderr = log, log
	// A namespace of its own for the world's addresses, and a group of its own, so that an interrupt ends the run first.
	w.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if err := w.process.Start(); err != nil {
		return err
	}
	go func() {
		_ = w.process.Wait() // why it ended stands in its log
		close(w.ended)
	}()
	if err := w.on(ctx); err != nil {
		return errors.Join(err, w.close())
	}
	return nil
}

// restart cuts the world's power and brings it on again with other delays: its machines boot, and its cluster comes back.
func (w *world) restart(ctx context.Context, profile string, scale float64) error {
	if err := w.close(); err != nil {
		return err
	}
	return w.start(ctx, profile, scale)
}

// on waits until the world is on.
func (w *world) on(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, worldStart)
	defer cancel()
	for {
		log, err := os.ReadFile(w.log)
		if err != nil {
			return err
		}
		if bytes.Contains(log, []byte("the world is on")) {
			return nil
		}
		select {
		case <-w.ended:
			return fmt.Errorf("the world did not start:\n%s", log)
		case <-ctx.Done():
			return fmt.Errorf("the world does not start:\n%s", log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// close ends the world. What it left stays in its folder, which goes with the folder of all runs.
func (w *world) close() error {
	_ = w.process.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-w.ended:
	case <-time.After(worldEnd):
		_ = syscall.Kill(-w.process.Process.Pid, syscall.SIGKILL)
		<-w.ended
		return fmt.Errorf("the world in %s did not end within %s", w.dir, worldEnd)
	}
	return nil
}

// serves are the moments from which a webhook answered, by namespace and Service.
func (w *world) serves() (map[string][]time.Time, error) {
	log, err := os.ReadFile(w.log)
	if err != nil {
		return nil, err
	}
	return parseServes(log), nil
}

var servesLine = regexp.MustCompile(`msg="webhook serves" namespace=(\S+) service=(\S+) at=(\S+)`)

func parseServes(log []byte) map[string][]time.Time {
	moments := map[string][]time.Time{}
	for _, match := range servesLine.FindAllSubmatch(log, -1) {
		at, err := time.Parse(time.RFC3339Nano, string(match[3]))
		if err != nil {
			continue
		}
		name := string(match[1]) + "/" + string(match[2])
		moments[name] = append(moments[name], at)
	}
	return moments
}

// cpu is the processor time that the world and what it started have taken so far.
func (w *world) cpu() time.Duration {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", w.process.Process.Pid))
	if err != nil {
		return 0
	}
	var ticks int
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if own, err := os.Readlink(process + "/ns/net"); err != nil || own != namespace {
			continue
		}
		stat, err := os.ReadFile(process + "/stat")
		if err != nil {
			continue
		}
		// After the program's name in parentheses: state is field 3, utime to cstime are 14 to 17 (proc_pid_stat(5)).
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, field := range fields[11:15] {
			n, _ := strconv.Atoi(string(field))
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ is 100 on all architectures that Go knows
}
