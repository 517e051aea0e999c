//go:build linux

package kube

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/sandbox/kube/relay"
)

// loopbackName is the name under which an API server shows a certificate that it makes when its process starts, and whose subject ends in
// that moment: ApplyTo in staging/src/k8s.io/apiserver/pkg/server/options/serving_with_loopback.go of Kubernetes 1.36, and
// GenerateSelfSignedCertKeyWithOptions in staging/src/k8s.io/client-go/util/cert/cert.go.
const loopbackName = "apiserver-loopback-client"

// helloTime bounds the wait for the first bytes of a connection.
const helloTime = 10 * time.Second

// door is the API of one control plane. One process stands behind all doors, and answers; since when it runs each door says for itself, as
// the API server of its control plane would.
type door struct {
	relay *relay.Relay
	own   *http.Server
}

func openDoor(address netip.AddrPort) (*door, error) {
	certificate, err := startedNow()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// Whoever asks is shown the certificate, and refused, as an API server refuses a caller who shows none.
	d := &door{own: &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, ReadHeaderTimeout: helloTime, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusUnauthorized) }),
	}}
	go func() { _ = d.own.ServeTLS(listener, "", "") }() // ends by Close
	own := listener.Addr().(*net.TCPAddr).AddrPort()
	d.relay, err = relay.ListenChoosing(address, func(client *net.TCPConn) (netip.AddrPort, error) {
		asks, err := asksFor(client, loopbackName)
		if asks {
			return own, err
		}
		return apiServer, err
	})
	if err != nil {
		return nil, errors.Join(err, d.own.Close())
	}
	return d, nil
}

// Close stops listening and cuts the open connections.
func (d *door) Close() {
	d.relay.Close()
	_ = d.own.Close()
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
