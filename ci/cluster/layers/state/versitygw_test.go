package state

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// versitygw is the gateway of that name with an empty bucket, states, until the test ends.
func versitygw(t *testing.T, program string) http.Handler {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "states"), 0o700); err != nil { // a folder is a bucket
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	// Not every file system keeps attributes, of which the gateway has its metadata otherwise.
	command := exec.Command(program, "--port", address, "--access", "key", "--secret", "secret", "posix", "--sidecar", t.TempDir(), root)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}) // it keeps the Host that was signed
}
