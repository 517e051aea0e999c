package talos

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/siderolabs/crypto/x509"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	machineService = "/machine.MachineService/"
	certificateTTL = 24 * 365 * time.Hour
	backdate       = time.Hour
)

// allowed are the calls that need less than an administrator: the roles that may make them. It follows the table
// rules in internal/app/machined/pkg/system/services/machined.go of Talos 1.13.
var allowed = map[string]role.Set{
	machineService + "Version":         role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "Hostname":        role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "Memory":          role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "ServiceList":     role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "Logs":            role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "List":            role.MakeSet(role.Admin, role.Operator, role.Reader),
	machineService + "EtcdMemberList":  role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup),
	machineService + "EtcdStatus":      role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup),
	machineService + "Reboot":          role.MakeSet(role.Admin, role.Operator),
	machineService + "Shutdown":        role.MakeSet(role.Admin, role.Operator),
	machineService + "ImagePull":       role.MakeSet(role.Admin, role.Operator),
	v1alpha1.State_Get_FullMethodName:  role.MakeSet(role.Admin, role.Operator, role.Reader),
	v1alpha1.State_List_FullMethodName: role.MakeSet(role.Admin, role.Operator, role.Reader),
	// A reader may apply a configuration in maintenance mode only; the call itself looks.
	machineService + "ApplyConfiguration": role.MakeSet(role.Admin, role.Reader),
}

// maintenanceServer is the API before there is a configuration: a certificate that the machine signed itself, no certificate asked of
// the caller, who has the role of a reader.
func (m *machine) maintenanceServer(address netip.Addr) (*grpc.Server, error) {
	authority, err := x509.NewSelfSignedCertificateAuthority(x509.NotBefore(time.Now().Add(-backdate)), x509.NotAfter(time.Now().Add(certificateTTL)))
	if err != nil {
		return nil, err
	}
	certificate, err := serverCertificate(authority, []netip.Addr{address}, nil)
	if err != nil {
		return nil, err
	}
	return m.server(&tls.Config{Certificates: []tls.Certificate{certificate}}, true), nil
}

// configuredServer is the API under the PKI of the configuration.
func (m *machine) configuredServer(conf *settings, address netip.Addr, authority *x509.PEMEncodedCertificateAndKey) (*grpc.Server, error) {
	signer, err := x509.NewCertificateAuthorityFromCertificateAndKey(authority)
	if err != nil {
		return nil, fmt.Errorf("the machines' certificate authority: %w", err)
	}
	certificate, err := serverCertificate(signer, []netip.Addr{address, netip.MustParseAddr("127.0.0.1")}, append([]string{conf.hostname}, conf.sans...))
	if err != nil {
		return nil, err
	}
	clients := stdx509.NewCertPool()
	if !clients.AppendCertsFromPEM(authority.Crt) {
		return nil, errors.New("the machines' certificate authority is not PEM")
	}
	for _, accepted := range conf.provider.Machine().Security().AcceptedCAs() {
		clients.AppendCertsFromPEM(accepted.Crt)
	}
	return m.server(&tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}, false), nil
}

func serverCertificate(authority *x509.CertificateAuthority, addresses []netip.Addr, names []string) (tls.Certificate, error) {
	var ips []net.IP
	for _, address := range addresses {
		ips = append(ips, address.AsSlice())
	}
	var hosts []string
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	pair, err := x509.NewKeyPair(authority, x509.IPAddresses(ips), x509.DNSNames(hosts),
		x509.NotBefore(time.Now().Add(-backdate)), x509.NotAfter(time.Now().Add(certificateTTL)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))
	if err != nil {
		return tls.Certificate{}, err
	}
	signed := x509.NewCertificateAndKeyFromKeyPair(pair)
	return tls.X509KeyPair(signed.Crt, signed.Key)
}

// authority is what signs the machine's certificate: a control plane's own, or for a worker that of a control plane that is up and has
// the same certificate. nil when the context ended first.
func (m *machine) authority(ctx context.Context, conf *settings) *x509.PEMEncodedCertificateAndKey {
	own := conf.provider.Machine().Security().IssuingCA()
	if conf.control {
		return own
	}
	var signer *x509.PEMEncodedCertificateAndKey
	if !m.fleet.until(ctx, func() bool {
		for _, other := range m.fleet.machines {
			if other.conf != nil && other.conf.control && other.ready && other.conf.machine == conf.machine {
				signer = other.conf.provider.Machine().Security().IssuingCA()
				return true
			}
		}
		return false
	}) {
		return nil
	}
	return signer
}

func (m *machine) server(config *tls.Config, maintenance bool) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(config)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			ctx, err := m.authorized(ctx, info.FullMethod, maintenance)
			if err != nil {
				return nil, err
			}
			return m.route(ctx, info.FullMethod, request, handle, maintenance)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			ctx, err := m.authorized(stream.Context(), info.FullMethod, maintenance)
			if err != nil {
				return err
			}
			targets, err := m.targets(ctx, maintenance)
			if err != nil {
				return err
			}
			for _, target := range targets {
				target.called(info.FullMethod)
			}
			if len(targets) != 1 {
				return status.Error(codes.InvalidArgument, "the simulated machine streams from one node only")
			}
			return handle(server, &routed{ServerStream: stream, ctx: with(ctx, targets[0])})
		}),
	)
	machineapi.RegisterMachineServiceServer(server, &api{})
	v1alpha1.RegisterStateServer(server, resources{})
	return server
}

// authorized puts the caller's roles into the context, or refuses.
func (m *machine) authorized(ctx context.Context, method string, maintenance bool) (context.Context, error) {
	roles := role.MakeSet(role.Reader)
	if !maintenance {
		caller, ok := peer.FromContext(ctx)
		if !ok {
			return nil, status.Error(codes.PermissionDenied, "not authorized")
		}
		info, ok := caller.AuthInfo.(credentials.TLSInfo)
		if !ok || len(info.State.PeerCertificates) == 0 {
			return nil, status.Error(codes.PermissionDenied, "not authorized")
		}
		roles, _ = role.Parse(info.State.PeerCertificates[0].Subject.Organization)
	}
	needed, known := allowed[method]
	if !known {
		needed = role.MakeSet(role.Admin)
	}
	if !needed.IncludesAny(roles) {
		return nil, status.Error(codes.PermissionDenied, "not authorized")
	}
	return context.WithValue(ctx, rolesKey{}, roles), nil
}

type (
	rolesKey  struct{}
	targetKey struct{}
)

// with names the machine that a call is for.
func with(ctx context.Context, target *machine) context.Context {
	return context.WithValue(ctx, targetKey{}, target)
}

// routed is a stream whose context names the machine.
type routed struct {
	grpc.ServerStream
	ctx context.Context
}

func (r *routed) Context() context.Context { return r.ctx }

// route makes a call on the machines that its metadata names, as talosctl --nodes does through any endpoint, and puts their answers
// together.
func (m *machine) route(ctx context.Context, method string, request any, handle grpc.UnaryHandler, maintenance bool) (any, error) {
	targets, err := m.targets(ctx, maintenance)
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		target.called(method)
	}
	names, _ := metadata.FromIncomingContext(ctx)
	if len(names.Get("nodes")) == 0 {
		return handle(with(ctx, targets[0]), request)
	}
	var all proto.Message
	for i, target := range targets {
		response, err := handle(with(ctx, target), request)
		if err != nil {
			return nil, err
		}
		message, ok := response.(proto.Message)
		if !ok {
			return nil, status.Error(codes.Internal, "the answer is no message")
		}
		mark(message.ProtoReflect(), names.Get("nodes")[i])
		if all == nil {
			all = message
		} else {
			proto.Merge(all, message)
		}
	}
	return all, nil
}

// called notes a call.
func (m *machine) called(method string) {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.services.call(method)
}

// mark writes the node's name into every answer of a response.
func mark(response protoreflect.Message, node string) {
	field := response.Descriptor().Fields().ByName("messages")
	if field == nil || !field.IsList() {
		return
	}
	list := response.Mutable(field).List()
	for i := range list.Len() {
		answer := list.Get(i).Message()
		about := answer.Descriptor().Fields().ByName("metadata")
		if about == nil {
			continue
		}
		metadata := answer.Mutable(about).Message()
		if hostname := metadata.Descriptor().Fields().ByName("hostname"); hostname != nil {
			metadata.Set(hostname, protoreflect.ValueOfString(node))
		}
	}
}

// targets are the machines that a call is for: this one, or those that its metadata names.
func (m *machine) targets(ctx context.Context, maintenance bool) ([]*machine, error) {
	names, _ := metadata.FromIncomingContext(ctx)
	wanted := slices.Concat(names.Get("node"), names.Get("nodes"))
	if maintenance || len(wanted) == 0 {
		return []*machine{m}, nil
	}
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*machine
	for _, name := range wanted {
		target := f.at(name)
		if target == nil || target.conf == nil || m.conf == nil || target.conf.machine != m.conf.machine {
			return nil, status.Errorf(codes.Unavailable, "connection error: no machine of this cluster answers at %s", name)
		}
		all = append(all, target)
	}
	return all, nil
}
