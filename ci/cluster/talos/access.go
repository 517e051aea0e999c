package talos

import (
	"tazlab.net/castle/ci/cluster/talos/machineconfig"

	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"

	"tazlab.net/castle/ci/cluster/config"
)

const (
	callTimeout = 3 * time.Second // one call to one machine; all of them answer at once or not at all
	accessTTL   = 24 * time.Hour  // of the client certificate that an Access works with
)

// Options are what Up and Dial can be told. The zero value is right for real machines.
type Options struct {
	// Event is told what happens, from several goroutines; no value in it is secret.
	Event func(Event)
	// UUID is what the hypervisor gave a node's machine to be known by: one in maintenance mode that has another is
	// given nothing. Nil where nobody can tell.
	UUID func(ctx context.Context, node string) (string, error)
	// Made is for machines that are all made in this run, some of them still to come: it waits until a node's is there. Nil: all are there.
	Made             func(ctx context.Context, node string) error
	Poll             time.Duration // between two looks at a machine; 200 ms
	Silence          time.Duration // how long a node may be silent before the subnet is searched; 90 s
	NodeDeadline     time.Duration // until each node must answer with its configuration; 10 min
	EtcdDeadline     time.Duration // how long no control plane may get any further on its way into etcd; 3 min
	PullDeadline     time.Duration // the same, where a control plane prepares etcd and holds no data of it, so that it pulls the image, or waits for its clock; 10 min
	BootstrapTimeout time.Duration // of one bootstrap call; 30 s
	NoopGrace        time.Duration // until a bootstrap call that left etcd untouched is repeated; 3 s
	LearnerGrace     time.Duration // how long a learner is let be, before Talos is asked whether it makes it a voter; 20 s
	Port             int           // of the Talos API; 50000
	SearchTimeout    time.Duration // for one address of the subnet's search; 1 s
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Poll, 200*time.Millisecond)
	set(&o.Silence, 90*time.Second)
	set(&o.NodeDeadline, 10*time.Minute)
	set(&o.EtcdDeadline, 3*time.Minute)
	set(&o.PullDeadline, 10*time.Minute)
	// Talos waits five seconds for its clock, and then stops etcd, which may be in the middle of something: Bootstrap in
	// internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos 1.13.
	set(&o.BootstrapTimeout, 30*time.Second)
	set(&o.NoopGrace, 3*time.Second)
	set(&o.LearnerGrace, 20*time.Second)
	set(&o.SearchTimeout, time.Second)
	if o.Port == 0 {
		o.Port = constants.ApidPort
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	return o
}

// Access holds connections to all nodes of a cluster, under an administrator's certificate of its own that lives for a
// day. Connections are made when they are first needed, through the proxy that the environment names.
type Access struct {
	cluster *config.Cluster
	options Options
	nodes   []*node
}

// node is one machine with its two ways in.
type node struct {
	config.Node
	client   *client.Client // mutual TLS with the cluster's authority: what a configured machine accepts; nil without a PKI
	insecure *client.Client // TLS without any authority: what a machine in maintenance mode accepts
	asked    *atomic.Bool   // the machine asked insecure for a certificate, which maintenance mode does not do
	pin      *pin           // what certificate it has shown to insecure
}

// Dial prepares access to the nodes of a cluster. It contacts nobody; Close when done. Without a bundle, since the cluster has no PKI yet, all
// that can be done is to look at their Status.
func Dial(c *config.Cluster, bundle *machineconfig.Bundle, options Options) (*Access, error) {
	options = options.withDefaults()
	if bundle == nil {
		return dialWithoutPKI(c, options)
	}
	certificate, err := bundle.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(role.Admin), accessTTL+machineconfig.ClockSkew)
	if err != nil {
		return nil, fmt.Errorf("sign an administrator's certificate for the machines of %s: %w", c.Name, err)
	}
	access := &Access{cluster: c, options: options}
	for _, declared := range c.Nodes {
		address := net.JoinHostPort(declared.Address.String(), strconv.Itoa(options.Port))
		n := &node{Node: declared, asked: &atomic.Bool{}, pin: &pin{}}
		if n.client, err = client.New(context.Background(), connection(address,
			client.WithConfigContext(&clientconfig.Context{
				Endpoints: []string{address},
				CA:        encode(bundle.Certs.OS.Crt), Crt: encode(certificate.Crt), Key: encode(certificate.Key),
			}))...); err == nil {
			n.insecure, err = n.insecureClient(address)
		}
		access.nodes = append(access.nodes, n)
		if err != nil {
			access.Close()
			return nil, fmt.Errorf("prepare the connection to %s: %w", declared.Name, err)
		}
	}
	return access, nil
}

func dialWithoutPKI(c *config.Cluster, options Options) (*Access, error) {
	access := &Access{cluster: c, options: options}
	for _, declared := range c.Nodes {
		n := &node{Node: declared, asked: &atomic.Bool{}, pin: &pin{}}
		var err error
		if n.insecure, err = n.insecureClient(net.JoinHostPort(declared.Address.String(), strconv.Itoa(options.Port))); err != nil {
			access.Close()
			return nil, fmt.Errorf("prepare the connection to %s: %w", declared.Name, err)
		}
		access.nodes = append(access.nodes, n)
	}
	return access, nil
}

// Close ends all connections.
func (a *Access) Close() {
	for _, n := range a.nodes {
		for _, c := range []*client.Client{n.client, n.insecure} {
			if c != nil {
				_ = c.Close() // nothing is buffered
			}
		}
	}
}

func (a *Access) controlPlanes() []*node {
	var nodes []*node
	for _, n := range a.nodes {
		if n.Role == config.RoleControlPlane {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// insecureClient trusts whoever answers: a machine in maintenance mode has signed its certificate itself. What is
// secret is told to it once it is known to be the right one (identity.go). asked is set when the other side wants a
// certificate.
func (n *node) insecureClient(address string) (*client.Client, error) {
	return client.New(context.Background(), connection(address,
		client.WithTLSConfig(&tls.Config{
			InsecureSkipVerify: true,
			VerifyConnection:   n.pin.verify,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				n.asked.Store(true)
				return &tls.Certificate{}, nil
			},
		}))...)
}

// connection is the dialling common to both ways in. gRPC would read the proxy's environment once per process; Reach reads
// it at each connection.
func connection(address string, options ...client.OptionFunc) []client.OptionFunc {
	return append(options,
		client.WithDefaultGRPCDialOptions(),
		client.WithGRPCDialOptions(grpc.WithContextDialer(Reach), grpc.WithConnectParams(grpc.ConnectParams{
			// A machine that boots refuses connections for a minute; gRPC's usual backoff would then look away for as long.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.1, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		})),
		client.WithEndpoints(address),
	)
}

// presence is what a look at a machine can find.
type presence int

const (
	silent      presence = iota // nobody answers, or not yet
	maintenance                 // waits for a configuration
	configured                  // has one of this cluster's authority
	foreign                     // has one of another authority
	stranger                    // shows another certificate than the one that is wanted
)

// look asks a machine who it is. The error says what was seen where presence is not configured or maintenance.
func (n *node) look(ctx context.Context) (presence, error) {
	if n.client != nil {
		err := version(ctx, n.client)
		switch {
		case err == nil:
			return configured, nil
		case !otherAuthority(err):
			return silent, err
		}
	}
	insecureErr := version(ctx, n.insecure)
	_, _, _, other := n.pin.other()
	switch {
	case insecureErr == nil, answered(insecureErr):
		n.asked.Store(false)
		return maintenance, nil
	case other:
		return stranger, insecureErr
	// The refusal itself comes after the handshake in TLS 1.3, as an alert or, where writing was faster, as a broken connection.
	case n.asked.Load():
		return foreign, errors.New("it asks for a client certificate of another authority than the cluster's")
	default:
		return silent, insecureErr
	}
}

func version(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.Version(ctx)
	return err
}

// patience is how long a single observation waits for a connection that has just failed. A connection that fails is tried again
// after a moment, and until then every call gets the old failure: a machine that came up meanwhile would still count as down.
const patience = 300 * time.Millisecond

// current calls, and where there is no connection calls again after a fresh attempt to connect.
func current[R any](ctx context.Context, c *client.Client, call func(context.Context, ...grpc.CallOption) (R, error)) (R, error) {
	result, err := call(ctx)
	if client.StatusCode(err) != codes.Unavailable {
		return result, err
	}
	c.Conn().ResetConnectBackoff()
	again, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if second, secondErr := call(again, grpc.WaitForReady(true)); again.Err() == nil {
		return second, secondErr
	}
	return result, err // it says more than a deadline
}

// otherAuthority tells that the handshake failed because one side does not know the other's authority. gRPC hands
// TLS errors on as text only.
func otherAuthority(err error) bool {
	return contains(err,
		"certificate signed by unknown authority", // our verdict on their certificate
		"bad certificate",                         // their verdict on ours, TLS 1.2
		"unknown certificate authority",           // their verdict on ours, TLS 1.3
		"certificate required")
}

// answered tells that a Talos API gave the error itself: the machine is there, it only refuses this call.
func answered(err error) bool {
	switch client.StatusCode(err) {
	case codes.PermissionDenied, // the caller has the role of a reader only
		codes.Unimplemented: // older maintenance services have few methods
		return true
	default:
		return false
	}
}

func contains(err error, texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// Kubeconfig is an administrator's kubeconfig made by the first control plane that answers, valid for a year.
func (a *Access) Kubeconfig(ctx context.Context) ([]byte, error) {
	var failures []error
	for _, node := range a.controlPlanes() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		data, err := node.client.Kubeconfig(ctx)
		cancel()
		if err == nil {
			return data, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", node.Name, err))
	}
	return nil, fmt.Errorf("no control plane of %s gave a kubeconfig: %w", a.cluster.Name, errors.Join(failures...))
}
