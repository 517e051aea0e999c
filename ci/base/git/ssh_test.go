package git

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"tazlab.net/castle/ci/test/needs"
)

// sshServer proves by its own key who it is, and lets nobody in.
func sshServer(t *testing.T) (address string, key ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return nil, errors.New("nobody")
	}}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _, _, _ = ssh.NewServerConn(connection, config)
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().String(), signer.PublicKey()
}

// A container's first look at a host is also its last, so that a key which is accepted because it is new is no check at all.
func TestAHostThatNobodyVouchesForIsNotSpokenTo(t *testing.T) {
	needs.Command(t, "openssh-client", "ssh")
	address, key := sshServer(t)
	_, others := sshServer(t)
	hosts := func(key ssh.PublicKey) string {
		name := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(name, []byte(knownhosts.Line([]string{address}, key)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	empty := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, knownHosts string
		want             error
	}{
		{"no file", "", ErrHostKey},
		{"an empty file", empty, ErrHostKey},
		{"another key", hosts(others), ErrHostKey},
		{"its key", hosts(key), ErrUnauthorized},
	} {
		_, err := Runner{Credentials: Credentials{KnownHosts: test.knownHosts}}.Run(t.Context(), "ls-remote", "ssh://git@"+address+"/repository.git")
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}
