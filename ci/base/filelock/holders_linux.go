package filelock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is one that has a lock's file open: it holds the lock, as its parent's child, or tries to take it.
type Process struct {
	PID     int
	Program string   // the base name of what it runs
	Args    []string // the first is the name that it was called by
}

// Holders are the processes that have the file open, but this one, as far as this one may look into them.
func Holders(name string) ([]Process, error) {
	file, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var holders []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !opens(pid, file) {
			continue
		}
		// What cannot be read has ended meanwhile.
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		process := Process{PID: pid, Program: filepath.Base(program)}
		for arg := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
			process.Args = append(process.Args, string(arg))
		}
		holders = append(holders, process)
	}
	return holders, nil
}

func opens(pid int, file fs.FileInfo) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		open, err := os.Stat(filepath.Join(folder, entry.Name()))
		if err == nil && os.SameFile(open, file) {
			return true
		}
	}
	return false
}

// Kill ends the process at once.
func (p Process) Kill() error {
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d (%s): %w", p.PID, p.Program, err)
	}
	return nil
}
