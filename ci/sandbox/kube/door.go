//go:build linux

package kube

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/sandbox/kube/relay"
)

// loopbackName is the name under which an API server shows a certificate that it makes when its process starts, and whose subject ends in
// that moment: ApplyTo in staging/src/k8s.io/apiserver/pkg/server/options/serving_with_loopback.go of Kubernetes 1.36, and
// GenerateSelfSignedCertKeyWithOptions in staging/src/k8s.io/client-go/util/cert/cert.go.
const loopbackName = "apiserver-loopback-client"

// helloTime bounds the wait for the first bytes of a connection, and for a request to the door itself.
const helloTime = 10 * time.Second

// door is the API of one control plane. One process stands behind all doors, and answers; since when it runs each door says for itself, as
// the API server of its control plane would.
type door struct {
	certificate tls.Certificate
	cut         context.CancelFunc
	running     sync.WaitGroup
}

func openDoor(address netip.AddrPort) (*door, error) {
	certificate, err := startedNow()
	if err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: relay.FreeBind, KeepAlive: -1}
	listener, err := config.Listen(context.Background(), "tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	ctx, cut := context.WithCancel(context.Background())
	d := &door{certificate: certificate, cut: cut}
	d.running.Go(func() { d.serve(ctx, listener) })
	return d, nil
}

// startedNow is the certificate of an API server that starts now. Real ones have keys of RSA, which take longer to make.
func startedNow() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{loopbackName},
		Subject:   pkix.Name{CommonName: fmt.Sprintf("%s@%d", loopbackName, now.Unix())},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// Close stops listening and cuts the open connections.
func (d *door) Close() {
	d.cut()
	d.running.Wait()
}

func (d *door) serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			time.Sleep(readyPeriod) // out of file descriptors
			continue
		}
		d.running.Go(func() { d.carry(ctx, conn.(*net.TCPConn)) })
	}
}

// carry joins a connection with the API server, but for one that asks since when it runs.
func (d *door) carry(ctx context.Context, conn *net.TCPConn) {
	reset := func() {
		_ = conn.SetLinger(0) // the peer must see a failure, not an empty answer
		_ = conn.Close()
	}
	release := context.AfterFunc(ctx, reset)
	defer release()
	asks, err := asksFor(conn, loopbackName)
	if err != nil {
		reset()
		return
	}
	if asks {
		d.introduce(conn)
		return
	}
	target, err := (&net.Dialer{}).DialContext(ctx, "tcp4", apiServer.String())
	if err != nil {
		reset()
		return
	}
	forward.Join(ctx, conn, target.(*net.TCPConn))
}

// asksFor looks whether a connection begins by asking for the certificate of a name, which a TLS client says in clear, and leaves to the
// connection what it has looked at.
func asksFor(conn *net.TCPConn, name string) (bool, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return false, err
	}
	hello := make([]byte, 4096)
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), hello, unix.MSG_PEEK)
		return failed != unix.EAGAIN
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return false, err
	}
	return bytes.Contains(hello[:max(n, 0)], []byte(name)), conn.SetReadDeadline(time.Time{})
}

// introduce shows the door's certificate and refuses the request, as an API server does whose caller shows none.
func (d *door) introduce(conn *net.TCPConn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{d.certificate}, MinVersion: tls.VersionTLS12})
	request, err := http.ReadRequest(bufio.NewReader(secured))
	if err != nil {
		return
	}
	response := http.Response{StatusCode: http.StatusUnauthorized, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: true,
		Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}
	if response.Write(secured) == nil {
		_ = secured.Close()
	}
}
