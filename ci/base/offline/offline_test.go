//go:build linux

package offline

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A test binary that is started with this variable opens a socket and says what came of it.
const opens = "CASTLE_TEST_OPENS"

func TestMain(m *testing.M) {
	if network := os.Getenv(opens); network != "" {
		os.Exit(open(network))
	}
	os.Exit(m.Run())
}

// The exit codes of open.
const (
	opened = iota
	unreachable
	otherwise
)

func open(network string) int {
	family := map[string]int{"inet": syscall.AF_INET, "inet6": syscall.AF_INET6, "unix": syscall.AF_UNIX, "packet": syscall.AF_PACKET, "netlink": syscall.AF_NETLINK}[network]
	switch socket, err := syscall.Socket(family, syscall.SOCK_DGRAM, 0); {
	case err == nil:
		_ = syscall.Close(socket)
		return opened
	case errors.Is(err, syscall.ENETUNREACH):
		return unreachable
	default:
		return otherwise
	}
}

func TestAProgramOpensSocketsOfNoNetwork(t *testing.T) {
	for network, want := range map[string]int{"inet": unreachable, "inet6": unreachable, "packet": unreachable, "unix": opened, "netlink": opened} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = []string{opens + "=" + network}
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code is looked at
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d", network, got, want)
		}
	}
}

// What a program starts in turn is refused as well.
func TestAProgramsOwnProgramsOpenNoneEither(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `"$0"; echo $?`, os.Args[0])
	cmd.Env = []string{opens + "=inet", "PATH=" + os.Getenv("PATH")}
	var said bytes.Buffer
	cmd.Stdout = &said
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || said.String() != "1\n" {
		t.Errorf("%v, %q", err, said.String())
	}
}

func TestWhoStartsItKeepsTheNetwork(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "true")
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // on whatever thread
		done := make(chan error)
		go func() {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = listener.Close()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMissingProgramIsAnErrorAsEver(t *testing.T) {
	if err := Start(exec.CommandContext(t.Context(), "no-such-program")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
