//go:build linux

package kube

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tazlab.net/castle/ci/sandbox/kube/process"
)

const (
	// apiPort is the API server's own; the forwarders on the control planes' addresses have the well-known one.
	apiPort      = 16443
	etcdPort     = 2379
	etcdPeerPort = 2380

	// startTimeout is for a loaded machine; two idle cores need 2.3 s.
	startTimeout = 90 * time.Second
	// readyPeriod is how often a starting program is asked.
	readyPeriod = 25 * time.Millisecond
	// restartPause is the rest before a program of the control plane that ended by itself is started again.
	restartPause = time.Second
	// etcdGrace is what etcd gets to end; its data is safe without.
	etcdGrace = 3 * time.Second
)

// admission is what Talos configures: pods of namespaces without labels of their own are held to the baseline standard.
//
//go:embed admission.yaml
var admission []byte

// encryption is what Talos configures for Secrets at rest.
const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox: {keys: [{name: key2, secret: %q}]}
      - identity: {}
`

// controlPlane is the running processes.
type controlPlane struct {
	folder   string
	config   Config
	binaries Binaries
	plane    *Plane
	admin    *rest.Config
	client   kubernetes.Interface

	stopping chan struct{}
	keepers  sync.WaitGroup

	mu        sync.Mutex
	processes map[string]*process.Process
}

// startControlPlane returns when the API server is ready. What it started is stopped when it fails.
func startControlPlane(ctx context.Context, p *Plane, config Config, names []string) (*controlPlane, error) {
	c := &controlPlane{
		folder: p.options.Folder, config: config, binaries: p.options.Binaries, plane: p,
		stopping: make(chan struct{}), processes: map[string]*process.Process{},
	}
	clients, err := config.pkiFiles(c.pki(""), names)
	if err != nil {
		return nil, fmt.Errorf("certificates of the control plane: %w", err)
	}
	if c.admin, err = c.connection(clients["admin"]); err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return nil, err
	}
	for _, name := range []string{"controller-manager", "scheduler"} {
		if err := clientcmd.WriteToFile(kubeconfig(c.address(), config.PKI.ClusterCA.Crt, clients[name]), c.pki(name+".kubeconfig")); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(c.pki("admission.yaml"), admission, 0o600); err != nil {
		return nil, err
	}
	if config.SecretboxSecret != "" {
		if err := os.WriteFile(c.pki("encryption.yaml"), fmt.Appendf(nil, encryption, config.SecretboxSecret), 0o600); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *controlPlane) pki(name string) string { return filepath.Join(c.plane.memory, "pki", name) }

func (c *controlPlane) address() string { return fmt.Sprintf("https://127.0.0.1:%d", apiPort) }

// connection is the administrator's, without limits of its own: it serves all nodes.
func (c *controlPlane) connection(client *x509.PEMEncodedCertificateAndKey) (*rest.Config, error) {
	config, err := clientcmd.NewDefaultClientConfig(kubeconfig(c.address(), c.config.PKI.ClusterCA.Crt, client), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "kubelet"
	return config, nil
}

func kubeconfig(server string, ca []byte, client *x509.PEMEncodedCertificateAndKey) clientcmdapi.Config {
	const name = "sandbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: client.Crt, ClientKeyData: client.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return *config
}

func (c *controlPlane) start(ctx context.Context) error {
	if err := c.keep("etcd", c.binaries.Etcd, c.etcdFlags()); err != nil {
		return err
	}
	if err := c.await(ctx, "etcd", c.etcdServes); err != nil {
		return err
	}
	if err := c.keep("kube-apiserver", c.binaries.APIServer, c.apiServerFlags()); err != nil {
		return err
	}
	if err := c.await(ctx, "kube-apiserver", c.apiServerReady); err != nil {
		return err
	}
	if err := c.keep("kube-controller-manager", c.binaries.ControllerManager, c.controllerManagerFlags()); err != nil {
		return err
	}
	return c.keep("kube-scheduler", c.binaries.Scheduler, c.schedulerFlags())
}

// keep starts a program and starts it again when it ends by itself, as the kubelet does with a static pod.
func (c *controlPlane) keep(name, path string, flags []string) error {
	log, err := process.OpenLog(filepath.Join(c.folder, "logs", name+".log"))
	if err != nil {
		return err
	}
	running, err := process.Start(process.Command{Path: path, Args: flags, Log: log, Env: []string{"PATH=/usr/bin:/bin", "HOME=/"}})
	if err != nil {
		log.Close()
		return err
	}
	c.set(name, running)
	c.keepers.Go(func() {
		defer log.Close()
		for {
			<-running.Done()
			select {
			case <-c.stopping:
				return
			case <-time.After(restartPause):
			}
			c.plane.log().Warn("a program of the control plane ended and is started again", "program", name, "code", running.ExitCode())
			next, err := process.Start(process.Command{Path: path, Args: flags, Log: log, Env: []string{"PATH=/usr/bin:/bin", "HOME=/"}})
			if err != nil {
				c.plane.log().Error("a program of the control plane cannot be started again", "program", name, "error", err)
				return
			}
			running = next
			if !c.set(name, running) {
				running.Kill()
				return
			}
		}
	})
	return nil
}

// end ends a program in order, and what is left of it after the grace. It is started again.
func (c *controlPlane) end(name string, grace time.Duration) {
	c.mu.Lock()
	running := c.processes[name]
	c.mu.Unlock()
	running.Stop(grace)
}

// set remembers a program's process; false when the control plane is being stopped.
func (c *controlPlane) set(name string, running *process.Process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stopping:
		return false
	default:
		c.processes[name] = running
		return true
	}
}

// stop ends everything: the API server before etcd, which it would otherwise wait for.
func (c *controlPlane) stop() {
	c.mu.Lock()
	close(c.stopping)
	processes := c.processes
	c.mu.Unlock()
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver"} {
		if running := processes[name]; running != nil {
			running.Kill()
		}
	}
	if etcd := processes["etcd"]; etcd != nil {
		etcd.Stop(etcdGrace)
	}
	c.keepers.Wait()
}

// await asks until the program serves; it fails at once when the program has ended.
func (c *controlPlane) await(ctx context.Context, name string, serves func(context.Context) error) error {
	c.mu.Lock()
	running := c.processes[name]
	c.mu.Unlock()
	var last error
	for {
		if last = serves(ctx); last == nil {
			return nil
		}
		select {
		case <-time.After(readyPeriod):
		case <-running.Done():
			return fmt.Errorf("%s ended with code %d: see %s", name, running.ExitCode(), filepath.Join(c.folder, "logs", name+".log"))
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w", name, errors.Join(ctx.Err(), last))
		}
	}
}

// etcdServes asks the plain port for health: it answers once there is a leader.
func (c *controlPlane) etcdServes(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/health", etcdMetricsPort), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}).Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd's health: %s", response.Status)
	}
	return nil
}

func (c *controlPlane) apiServerReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// serveNames makes the certificate valid for more names, and returns when the API server uses it.
func (c *controlPlane) serveNames(ctx context.Context, names []string) error {
	if err := c.config.recertify(c.pki(""), names); err != nil {
		return fmt.Errorf("certificate of the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.await(ctx, "kube-apiserver", func(ctx context.Context) error {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // only looked at
		conn, err := dialer.DialContext(ctx, "tcp", apiServer.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		used := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		for _, name := range names {
			if err := used.VerifyHostname(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// names are what the API server's certificate is valid for, whichever control planes there are.
func (c Config) names() []string {
	return append([]string{
		"localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + c.domain(), c.service().String(), c.VIP.String(),
	}, c.CertSANs...)
}
