// Package kubetest gives a test a cluster's API: a real etcd and a real kube-apiserver on loopback, with certificates of
// their own, in a folder that goes with the test. There is no controller and no node: what controllers would write, the
// test writes, and an admission webhook answers when the test says so. A whole cluster is the sandbox's.
//
// controller-runtime's envtest starts the same two programs. It can only ask an API server to end, which then waits for its
// clients' watches, and keeps its authority to itself; the tests here crash the server, and serve and call with certificates
// of its authority and of others.
package kubetest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/base/porttest"
	"tazlab.net/castle/ci/test/needs"
)

// Server is a running API server, as one test sees it.
type Server struct {
	Host string // "https://127.0.0.1:<port>"

	t testing.TB
	*processes
}

// processes is what runs.
type processes struct {
	folder string
	pki    *pki
	port   string
	etcd   string
	store  *process
	api    *process
}

// Start starts both and waits until the API server is ready. They end with the test. Where the programs are not
// built, the test is skipped; with CASTLE_REQUIRE_ALL set, it fails.
func Start(t testing.TB) *Server {
	t.Helper()
	s := launch(t, t.TempDir())
	t.Cleanup(s.stop)
	return s
}

// Shared is one server for the tests of a package that do not disturb each other. Its zero value is ready for use.
type Shared struct {
	server *Server
}

// Server is Start the first time, and then the same server for the test t. Only one test may be in here at a time.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	if s.server == nil {
		folder, err := os.MkdirTemp("", "kubetest-")
		if err != nil {
			t.Fatal(err)
		}
		s.server = launch(t, folder)
	}
	return &Server{Host: s.server.Host, t: t, processes: s.server.processes}
}

// Run runs a package's tests, ends the server, if there was one, and returns the exit code: a TestMain is
// os.Exit(shared.Run(m)).
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.server != nil {
		s.server.stop()
		_ = os.RemoveAll(s.server.folder)
	}
	return code
}

func launch(t testing.TB, folder string) *Server {
	t.Helper()
	programs := needs.Programs(t, "etcd", "kubernetes")
	pki, err := newPKI(folder)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(porttest.Free(t, "127.0.0.1"))
	s := &Server{Host: "https://127.0.0.1:" + port, t: t, processes: &processes{
		folder: folder, pki: pki, port: port, etcd: "http://127.0.0.1:" + strconv.Itoa(porttest.Free(t, "127.0.0.1")),
	}}
	peer := "http://127.0.0.1:" + strconv.Itoa(porttest.Free(t, "127.0.0.1"))
	s.store = start(t, folder, programs["etcd"],
		"--data-dir="+filepath.Join(folder, "etcd"),
		"--listen-client-urls="+s.etcd, "--advertise-client-urls="+s.etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", "--log-level=error")
	s.api = s.newAPI(programs["kube-apiserver"])
	if err := s.waitReady(); err != nil {
		s.stop()
		t.Fatal(err)
	}
	return s
}

// stop stops the API server first: it hangs when etcd is gone.
func (p *processes) stop() {
	p.api.stop()
	p.store.stop()
}

// Env is the environment that kube.FromEnv reads: the API's address and an administrator's certificate.
func (s *Server) Env() map[string]string {
	return map[string]string{
		"KUBE_HOST":                 s.Host,
		"KUBE_CLUSTER_CA_CERT_DATA": string(s.pki.ca.CrtPEM),
		"KUBE_CLIENT_CERT_DATA":     string(s.pki.admin.CrtPEM),
		"KUBE_CLIENT_KEY_DATA":      string(s.pki.admin.KeyPEM),
	}
}

// Getenv reads Env as os.Getenv reads the environment.
func (s *Server) Getenv(name string) string { return s.Env()[name] }

// Certificate issues a client certificate, PEM, for a user of the API.
func (s *Server) Certificate(user string, groups ...string) (cert, key []byte) {
	s.t.Helper()
	pair, err := s.pki.client(user, groups...)
	if err != nil {
		s.t.Fatal(err)
	}
	return pair.CrtPEM, pair.KeyPEM
}

// StopAPI ends the API server as a crash would: asked, it would first wait for its clients' watches. Etcd keeps what it
// stored.
func (s *Server) StopAPI() { s.api.kill() }

// StartAPI starts the API server again, at the same address, and waits until it is ready.
func (s *Server) StartAPI() {
	s.t.Helper()
	s.api = s.newAPI(s.api.program)
	if err := s.waitReady(); err != nil {
		s.t.Fatal(err)
	}
}

// Unestablish leaves a CRD as an API server does that is ended between the two steps of its making: its names are accepted, and it is not
// Established. The API server is to be stopped.
func (s *Server) Unestablish(definition string) {
	s.t.Helper()
	key := base64.StdEncoding.EncodeToString([]byte("/registry/apiextensions.k8s.io/customresourcedefinitions/" + definition))
	var stored struct {
		Values []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	s.askEtcd("range", map[string]any{"key": key}, &stored)
	if len(stored.Values) != 1 {
		s.t.Fatalf("etcd has %d CRDs of the name %s", len(stored.Values), definition)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(stored.Values[0].Value, &object.Object); err != nil {
		s.t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for i := range conditions {
		if condition, is := conditions[i].(map[string]any); is && condition["type"] == "Established" {
			condition["status"], condition["reason"], condition["message"] = "False", "Installing", "the initial names have been accepted"
		}
	}
	if err := errors.Join(err, unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")); err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	s.askEtcd("put", map[string]any{"key": key, "value": text}, nil)
}

// askEtcd calls etcd's gateway, which takes its API's messages as JSON.
func (s *Server) askEtcd(call string, message, answer any) {
	s.t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.Post(s.etcd+"/v3/kv/"+call, "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("etcd answers %s: %s %v", response.Status, text, err)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
}

func (s *Server) newAPI(program string) *process {
	return start(s.t, s.folder, program,
		"--etcd-servers="+s.etcd,
		"--bind-address=127.0.0.1", "--secure-port="+s.port, "--advertise-address=127.0.0.1",
		"--tls-cert-file="+s.pki.file("server.crt"), "--tls-private-key-file="+s.pki.file("server.key"),
		"--client-ca-file="+s.pki.file("ca.crt"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.pki.file("server.key"), "--service-account-signing-key-file="+s.pki.file("server.key"),
		"--allow-privileged=true", // as Talos has it, for what mounts disks
		"--service-cluster-ip-range=10.96.0.0/24",
		"--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount",
		"--cert-dir="+s.folder, "--v=0")
}

// waitReady asks as fast as makes no difference.
func (p *processes) waitReady() error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: p.pki.adminTLS(), DisableKeepAlives: true}}
	deadline := time.After(90 * time.Second)
	for {
		response, err := client.Get("https://127.0.0.1:" + p.port + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-deadline:
			return fmt.Errorf("the API server is not ready after 90s:\n%s", p.api.tail())
		case <-p.api.ended:
			return fmt.Errorf("the API server ended before it was ready:\n%s", p.api.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// process is a running program.
type process struct {
	program string
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

func start(t testing.TB, folder, program string, arguments ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(folder, filepath.Base(program)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{program: program, command: command, log: log.Name(), ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(p.ended)
	}()
	return p
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// stop asks and, if that does not help, kills.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.kill()
	}
}

func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprint(err)
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
