package nodump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const variable = "NODUMP_TEST_SECRET"

// The capabilities that /proc shows of a process are those of its first thread.
func init() { runtime.LockOSThread() }

// dropCapabilities of this thread, as both processes have the same in a container.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// TestMain is also the process that holds a secret in its environment.
func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	if err := dropCapabilities(); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "protected" {
		if err := Process(); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has looked
}

func TestAnotherProcessOfTheUserCannotReadTheEnvironment(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"plain", "protected"} {
		command := exec.Command(program, mode)
		command.Env = []string{variable + "=canary"}
		in, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		_, err = readWithoutPrivileges(fmt.Sprintf("/proc/%d/environ", command.Process.Pid))
		if refused := errors.Is(err, fs.ErrPermission); refused != (mode == "protected") {
			t.Errorf("the environment of a %s process: %v", mode, err)
		}
		_ = in.Close()
		_ = command.Wait()
	}
}

// readWithoutPrivileges reads as a process of the same user does that has no capabilities.
func readWithoutPrivileges(name string) (data []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		if err = dropCapabilities(); err == nil {
			data, err = os.ReadFile(name)
		}
	}()
	<-done
	return data, err
}
