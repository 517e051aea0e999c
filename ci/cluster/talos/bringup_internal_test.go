package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"tazlab.net/castle/ci/cluster/config"
)

// waiting is a machine in maintenance mode that answers each time that a configuration is applied to it with the next of some codes.
type waiting struct {
	machine.UnimplementedMachineServiceServer
	codes []codes.Code
	calls int
	last  func() // at the last of them
}

func (w *waiting) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{}, nil
}

func (w *waiting) ApplyConfiguration(context.Context, *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	code := w.codes[min(w.calls, len(w.codes)-1)]
	if w.calls++; w.calls >= len(w.codes) {
		w.last()
	}
	return &machine.ApplyConfigurationResponse{}, status.Error(code, "not now")
}

// serve returns the address.
func (w *waiting) serve(t *testing.T) string {
	t.Helper()
	authority, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(authority.CrtPEM, authority.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	machine.RegisterMachineServiceServer(server, w)
	go func() { _ = server.Serve(listener) }() // ends by Stop
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// The configuration may be one of an earlier run, or one whose answer was lost.
func TestARefusalWhileAMachineTakesAConfigurationPasses(t *testing.T) {
	for name, c := range map[string]struct {
		answers []codes.Code
		ends    codes.Code // OK: it is gone on with
	}{
		"its answer was lost":      {answers: []codes.Code{codes.DeadlineExceeded, codes.FailedPrecondition, codes.PermissionDenied, codes.OK}},
		"an earlier run's":         {answers: []codes.Code{codes.PermissionDenied, codes.OK}},
		"it is none that it takes": {answers: []codes.Code{codes.DeadlineExceeded, codes.InvalidArgument, codes.OK}, ends: codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := &node{Node: config.Node{Name: "cp-1"}, asked: &atomic.Bool{}, pin: &pin{}}
			var err error
			if n.insecure, err = n.insecureClient((&waiting{codes: c.answers, last: cancel}).serve(t)); err != nil {
				t.Fatal(err)
			}
			r := &run{Access: &Access{nodes: []*node{n}, options: Options{Poll: time.Millisecond}.withDefaults()},
				started: time.Now(), progress: map[string]progress{}}
			t.Cleanup(r.Close)
			b := r.bringUp(n)
			b.fits = true
			_, err = b.configure(ctx, r.begin(StepMachine, n.Name))
			if c.ends == codes.OK && !errors.Is(err, context.Canceled) || c.ends != codes.OK && client.StatusCode(err) != c.ends {
				t.Errorf("after %v: %v", c.answers, err)
			}
		})
	}
}

func TestAMachineGoesFromStageToStageByWhatALookFinds(t *testing.T) {
	t.Parallel()
	machines := &waiting{codes: []codes.Code{codes.OK}, last: func() {}}
	n := &node{Node: config.Node{Name: "cp-1"}, asked: &atomic.Bool{}, pin: &pin{}}
	var err error
	if n.insecure, err = n.insecureClient(machines.serve(t)); err != nil {
		t.Fatal(err)
	}
	r := &run{Access: &Access{nodes: []*node{n}, options: Options{}.withDefaults()}, progress: map[string]progress{}}
	t.Cleanup(r.Close)
	r.enter(n, machineBooting)
	b := r.bringUp(n)
	b.fits = true
	for i, c := range []struct {
		found   presence
		stage   machineStage
		applied int // how often it was given its configuration
		result  string
	}{
		{silent, machineBooting, 0, ""},
		{maintenance, machineInstalling, 1, ""},
		{maintenance, machineInstalling, 1, ""}, // it is given time
		{silent, machineRebooting, 1, ""},
		{maintenance, machineInstalling, 2, ""}, // it fell back, as by a power cut while it installed
		{silent, machineRebooting, 2, ""},
		{configured, machineRunning, 2, Configured},
	} {
		result, _, err := b.next(t.Context(), c.found, errors.New("connection refused"))
		if stage := r.seen(n).stage; err != nil || stage != c.stage || machines.calls != c.applied || result != c.result {
			t.Fatalf("look %d: stage %d, given %d times, result %q, %v", i+1, stage, machines.calls, result, err)
		}
	}
	if !r.seen(n).fresh {
		t.Error("nobody knows that it was in maintenance mode in this run")
	}
}
