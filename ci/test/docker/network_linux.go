package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	// HostAddress is where containers find what listens on this machine's 127.0.0.1, and nameserver where they find its
	// name server: slirp4netns's own addresses.
	HostAddress = "10.0.2.2"
	nameserver  = "10.0.2.3"

	tunDevice       = "/dev/net/tun"
	networkDeadline = 20 * time.Second
)

// joinNetwork connects the network namespace of a process with the world, as long as the process that it returns lives.
func joinNetwork(ctx context.Context, pid int, logFile string) (*process, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	command := exec.Command("slirp4netns", "--configure", "--mtu=65520", "--ready-fd=3", strconv.Itoa(pid), "tap0")
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{tell}
	slirp, err := startProcess(command)
	tell.Close()
	if err != nil {
		return nil, fmt.Errorf("start slirp4netns: %w", err)
	}
	deadline := time.Now().Add(networkDeadline)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	if err := ready.SetReadDeadline(deadline); err != nil {
		slirp.kill()
		return nil, err
	}
	// It writes one byte when the network is there, and none when it fails.
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		slirp.kill()
		return nil, fmt.Errorf("slirp4netns made no network: %w", errors.Join(err, errors.New(lastLines(logFile, 5))))
	}
	return slirp, nil
}
