package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func client(t *testing.T, proxy *Proxy, target *httptest.Server) *http.Client {
	t.Helper()
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(address)}
	if target.TLS != nil {
		transport.TLSClientConfig = target.Client().Transport.(*http.Transport).TLSClientConfig
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func loopback() *Proxy {
	return &Proxy{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func TestPlainRequestsAndTunnelsReachTheirTarget(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(body))
	})
	for name, target := range map[string]*httptest.Server{"http": httptest.NewServer(handler), "https": httptest.NewTLSServer(handler)} {
		t.Run(name, func(t *testing.T) {
			defer target.Close()
			answer, err := client(t, loopback(), target).Post(target.URL+"/there", "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if text, _ := io.ReadAll(answer.Body); string(text) != "POST /there body" {
				t.Errorf("got %q", text)
			}
		})
	}
}

// A client need not wait for the tunnel, and may end its half of it first.
func TestATunnelCarriesWhatStandsRightBehindTheRequest(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	go func() {
		conn, err := target.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if heard, err := io.ReadAll(conn); err == nil {
			_, _ = io.WriteString(conn, strings.ToUpper(string(heard)))
		}
	}()
	server := httptest.NewServer(loopback())
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	address := target.Addr().String()
	if _, err := io.WriteString(conn, "CONNECT "+address+" HTTP/1.1\r\nHost: "+address+"\r\n\r\nhello "); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "there"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if heard, err := io.ReadAll(conn); err != nil || string(heard) != "HELLO THERE" {
		t.Errorf("got %q, %v", heard, err)
	}
}

func TestAWatchComesThroughWhileItIsOpen(t *testing.T) {
	goOn := make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-goOn
	}))
	defer target.Close()
	defer close(goOn)
	answer, err := client(t, loopback(), target).Get(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line := make([]byte, 6)
	if _, err := io.ReadFull(answer.Body, line); err != nil || string(line) != "first\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestOtherNetworksAndNamesAreRefused(t *testing.T) {
	target := httptest.NewServer(http.NotFoundHandler())
	defer target.Close()
	proxy := &Proxy{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for _, address := range []string{target.URL, "http://a.name.invalid/"} {
		answer, err := client(t, proxy, target).Get(address)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", address, answer.Status)
		}
	}
}

func TestATargetThatDoesNotAnswerIsABadGateway(t *testing.T) {
	target := httptest.NewServer(http.NotFoundHandler())
	target.Close()
	answer, err := client(t, loopback(), target).Get(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusBadGateway {
		t.Errorf("got %s", answer.Status)
	}
}
