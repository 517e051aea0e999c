package gates

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The environment that names a cluster's API. The OpenTofu providers read the same names.
const (
	HostVariable       = "KUBE_HOST"
	CAVariable         = "KUBE_CLUSTER_CA_CERT_DATA"
	ClientCertVariable = "KUBE_CLIENT_CERT_DATA"
	ClientKeyVariable  = "KUBE_CLIENT_KEY_DATA"
)

// Kube is a connection to a cluster's API.
type Kube struct {
	config  *rest.Config
	dynamic dynamic.Interface
	grace   time.Duration // how long refused credentials may yet be accepted
}

// credentialsGrace is how long an API server that just started may refuse a good certificate.
const credentialsGrace = 10 * time.Second

// KubeFromEnv connects with what the environment holds; getenv is os.Getenv or alike. Nothing is read from disk, and
// nothing is sent yet. The proxy of the environment is used.
func KubeFromEnv(getenv func(string) string) (*Kube, error) {
	var missing []string
	values := map[string]string{}
	for _, name := range []string{HostVariable, CAVariable, ClientCertVariable, ClientKeyVariable} {
		if values[name] = getenv(name); values[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the cluster's API is not known: %s not set; castle create sets them for the hooks that it runs", strings.Join(missing, ", "))
	}
	return NewKube(values[HostVariable], []byte(values[CAVariable]), []byte(values[ClientCertVariable]), []byte(values[ClientKeyVariable]))
}

// NewKube connects to the API at host, a URL such as "https://192.168.1.210:6443"; the rest is PEM.
func NewKube(host string, ca, clientCert, clientKey []byte) (*Kube, error) {
	return newKube(&rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: clientCert, KeyData: clientKey}})
}

// newKube connects with a configuration that names the API and the credentials, and settles how it is talked to.
func newKube(config *rest.Config) (*Kube, error) {
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
	return &Kube{config: config, dynamic: client, grace: credentialsGrace}, nil
}

// poll asks the API at a pace, one try at a time.
func (k *Kube) poll(every time.Duration) Poll {
	return Poll{Every: every, Limit: listTimeout, Grace: k.grace}
}

// Config is a copy of the connection's configuration, for other clients.
func (k *Kube) Config() *rest.Config { return rest.CopyConfig(k.config) }

// freshClient is an HTTP client that opens a new connection for every request: an open one says nothing about who
// holds an address now.
func (k *Kube) freshClient() (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(k.config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil { // an http:// URL without certificates
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: &http.Transport{
		Proxy:             k.config.Proxy,
		DialContext:       k.config.Dial,
		TLSClientConfig:   tlsConfig,
		DisableKeepAlives: true,
	}}, nil
}
