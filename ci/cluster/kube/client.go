// Package kube talks to a cluster's API. Follow watches objects until they are as a rule wants them, Objects until each passes
// a test, and Poll asks again and again for what cannot be watched. A wait outlasts all that passes by itself: an API server
// that restarts, a watch that breaks off, a kind that is not defined yet. It ends at what no waiting mends, such as
// credentials of another cluster.
package kube

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// The environment that names a cluster's API. The OpenTofu providers read the same names.
const (
	HostVariable       = "KUBE_HOST"
	CAVariable         = "KUBE_CLUSTER_CA_CERT_DATA"
	ClientCertVariable = "KUBE_CLIENT_CERT_DATA"
	ClientKeyVariable  = "KUBE_CLIENT_KEY_DATA"
)

// client-go logs some of the errors that it also returns, onto standard error and in a form of its own. Whoever asked tells them.
func init() { klog.SetLogger(logr.Discard()) }

// Client is a connection to a cluster's API.
type Client struct {
	// Grace is how long an API server that just started may refuse good credentials.
	Grace time.Duration
	// NudgePatience is how long a CRD may lie whose names are accepted, before it is nudged, and again.
	NudgePatience time.Duration

	config  *rest.Config
	dynamic dynamic.Interface
}

// credentialsGrace is the Grace that connections begin with.
const credentialsGrace = 10 * time.Second

// FromEnv connects with what the environment holds, the variables of the providers; getenv is os.Getenv or alike. Nothing is read from disk, and
// nothing is sent yet. The proxy of the environment is used.
func FromEnv(getenv func(string) string) (*Client, error) {
	var missing []string
	values := map[string]string{}
	for _, name := range []string{HostVariable, CAVariable, ClientCertVariable, ClientKeyVariable} {
		if values[name] = getenv(name); values[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the cluster's API is not known: %s not set; castle create sets them for the layers' tools", strings.Join(missing, ", "))
	}
	return Connect(values[HostVariable], []byte(values[CAVariable]), []byte(values[ClientCertVariable]), []byte(values[ClientKeyVariable]))
}

// Connect connects to the API at host, a URL such as "https://192.168.1.210:6443"; the rest is PEM.
func Connect(host string, ca, clientCert, clientKey []byte) (*Client, error) {
	return newClient(&rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: clientCert, KeyData: clientKey}})
}

// newClient connects with a configuration that names the API and the credentials, and settles how it is talked to.
func newClient(config *rest.Config) (*Client, error) {
	dialer := &net.Dialer{
		Timeout: 3 * time.Second,
		// A virtual IP that moves leaves connections to its last holder behind, and nobody closes those.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
	}
	config.Dial = dialer.DialContext
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment
	}
	// HTTP/2 would put all watches into one connection, and all would stall with it until its ping fails.
	config.NextProtos = []string{"http/1.1"}
	config.QPS = -1 // the waits pace themselves
	// Warnings would be said at every try, in the middle of a calm log.
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &Client{config: config, dynamic: client, Grace: credentialsGrace, NudgePatience: nudgePatience}, nil
}

// Poll asks the API at a pace, one try at a time.
func (c *Client) Poll(every time.Duration) Poll {
	return Poll{Every: every, Limit: RequestTimeout, Grace: c.Grace}
}

// Resource is the API of one kind.
func (c *Client) Resource(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return c.dynamic.Resource(kind)
}

// Config is a copy of the connection's configuration, for other clients.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.config) }

// HTTPClient is an HTTP client that opens a new connection for every request: an open one says nothing about who
// holds an address now.
func (c *Client) HTTPClient() (*http.Client, error) { return httpClient(c.config) }

// ForwardedHTTPClient is HTTPClient for addresses that lead to the API and that its certificate need not name: it shows itself as what
// answers where the connection's own API does.
func (c *Client) ForwardedHTTPClient() (*http.Client, error) {
	own, err := url.Parse(c.config.Host)
	if err != nil {
		return nil, err
	}
	config := c.Config()
	config.ServerName = own.Hostname()
	return httpClient(config)
}

func httpClient(config *rest.Config) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil { // an http:// URL without certificates
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: &http.Transport{
		Proxy:             config.Proxy,
		DialContext:       config.Dial,
		TLSClientConfig:   tlsConfig,
		DisableKeepAlives: true,
	}}, nil
}
