package talos

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	stdx509 "crypto/x509"
	"fmt"
	"net"
	"path"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// api is the machine service. The context names the machine, since a call may come in at another one.
type api struct {
	machineapi.UnimplementedMachineServiceServer
}

func target(ctx context.Context) *machine { return ctx.Value(targetKey{}).(*machine) }

// Version tells the version, and whether the machine is a virtual one.
func (*api) Version(ctx context.Context, _ *emptypb.Empty) (*machineapi.VersionResponse, error) {
	m := target(ctx)
	conf := m.settings()
	message := &machineapi.Version{
		Version:  &machineapi.VersionInfo{Tag: m.template.Talos, Os: "linux", Arch: runtime.GOARCH, Built: ""},
		Platform: &machineapi.PlatformInfo{Name: "nocloud", Mode: "cloud"},
	}
	if conf != nil {
		message.Features = &machineapi.FeaturesInfo{Rbac: true}
	}
	return &machineapi.VersionResponse{Messages: []*machineapi.Version{message}}, nil
}

// Hostname is the configured name.
func (*api) Hostname(ctx context.Context, _ *emptypb.Empty) (*machineapi.HostnameResponse, error) {
	m := target(ctx)
	name := m.vm.Name
	if conf := m.settings(); conf != nil {
		name = conf.hostname
	}
	return &machineapi.HostnameResponse{Messages: []*machineapi.Hostname{{Hostname: name}}}, nil
}

// Memory is the VM's, most of it free.
func (*api) Memory(ctx context.Context, _ *emptypb.Empty) (*machineapi.MemoryResponse, error) {
	total := uint64(target(ctx).vm.MemoryMiB) << 10 // KiB
	return &machineapi.MemoryResponse{Messages: []*machineapi.Memory{{Meminfo: &machineapi.MemInfo{
		Memtotal: total, Memfree: total / 2, Memavailable: total * 3 / 4,
	}}}}, nil
}

// ServiceList tells all services.
func (*api) ServiceList(ctx context.Context, _ *emptypb.Empty) (*machineapi.ServiceListResponse, error) {
	m := target(ctx)
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	unhealthy := map[string]string{}
	switch _, me := m.own(); {
	case m.member && m.leader() == 0:
		unhealthy[etcdID] = "context deadline exceeded"
	case m.member && me != nil && (me.Learner || time.Now().Before(m.looked)): // ValidateQuorum in internal/pkg/etcd/etcd.go of Talos 1.13 reads as only voters can
		unhealthy[etcdID] = learnerText
	}
	return &machineapi.ServiceListResponse{Messages: []*machineapi.ServiceList{{Services: m.services.list(unhealthy)}}}, nil
}

// ApplyConfiguration takes a configuration, in maintenance mode from anybody: ApplyConfiguration in
// internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos v1.13.9.
func (*api) ApplyConfiguration(ctx context.Context, in *machineapi.ApplyConfigurationRequest) (*machineapi.ApplyConfigurationResponse, error) {
	m := target(ctx)
	f := m.fleet
	current := m.settings()
	roles, _ := ctx.Value(rolesKey{}).(role.Set)
	if current != nil && !roles.Includes(role.Admin) {
		return nil, status.Error(codes.PermissionDenied, "not authorized")
	}
	wanted, err := parse(in.GetData())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	mode := in.GetMode()
	details, why := "Applied configuration without a reboot", ""
	if current != nil {
		needed := restart(current, wanted)
		switch mode {
		case machineapi.ApplyConfigurationRequest_NO_REBOOT:
			if needed != nil {
				return nil, status.Error(codes.InvalidArgument, needed.Error())
			}
		case machineapi.ApplyConfigurationRequest_AUTO:
			mode = machineapi.ApplyConfigurationRequest_NO_REBOOT
			if needed != nil {
				mode, details, why = machineapi.ApplyConfigurationRequest_REBOOT, "Applied configuration with a reboot", ": "+needed.Error()
			}
		case machineapi.ApplyConfigurationRequest_REBOOT:
			details = "Applied configuration with a reboot"
		case machineapi.ApplyConfigurationRequest_STAGED:
			details = "Staged configuration to be applied after the next reboot"
		default:
			return nil, status.Errorf(codes.Unimplemented, "the simulated machine has no mode %s", mode)
		}
	}
	answer := &machineapi.ApplyConfigurationResponse{Messages: []*machineapi.ApplyConfiguration{{Mode: mode, ModeDetails: details + why}}}
	if in.GetDryRun() { // which does not say why (ApplyConfiguration in internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos 1.13)
		difference, err := difference(current, wanted)
		if err != nil {
			return nil, err
		}
		answer.Messages[0].ModeDetails = "Dry run summary:\n" + details + " (skipped in dry-run).\nConfig diff:\n\n" + difference
		return answer, nil
	}
	if current == nil {
		late := false
		f.change(func() { late, m.taken = m.taken, true })
		if late { // as above: with its first one it is in maintenance mode no more, though who was let in still has a connection
			return nil, status.Error(codes.PermissionDenied, "not authorized")
		}
		m.applied <- in.GetData()
		return answer, nil
	}
	f.change(func() {
		f.state.disk(m.vm.ID).Config = in.GetData()
		f.keep()
		if mode == machineapi.ApplyConfigurationRequest_NO_REBOOT {
			m.conf = wanted
		}
	})
	if mode == machineapi.ApplyConfigurationRequest_REBOOT {
		m.order(commandReboot)
	}
	return answer, nil
}

func difference(current, wanted *settings) (string, error) {
	if current == nil {
		return configdiff.DiffConfigs(nil, wanted.provider)
	}
	text, err := configdiff.DiffConfigs(current.provider, wanted.provider)
	if err == nil && text == "" {
		text = "No changes."
	}
	return text, err
}

// controlOnly refuses a call on a worker, and on a machine in maintenance mode, which is none either: CheckControlplane in
// internal/app/internal/machinehelper/machinehelper.go of Talos 1.13.
func (m *machine) controlOnly(what string) error {
	if conf := m.settings(); conf == nil || !conf.control {
		return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", what)
	}
	return nil
}

// clockPatience is how long a bootstrap waits for the clock. It is not scaled: neither is the patience of who calls.
const clockPatience = 5 * time.Second

// Bootstrap makes a cluster of this machine's etcd: Bootstrap in internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go and
// BootstrapEtcd in internal/app/machined/pkg/system/services/etcd.go of Talos 1.13. It honours the caller's deadline: one that ends while
// etcd is being stopped leaves it stopped, and not bootstrapped.
func (*api) Bootstrap(ctx context.Context, _ *machineapi.BootstrapRequest) (*machineapi.BootstrapResponse, error) {
	m := target(ctx)
	f := m.fleet
	f.mu.Lock()
	ready := m.ready
	f.mu.Unlock()
	if !ready {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}
	if err := m.controlOnly("bootstrap"); err != nil {
		return nil, err
	}
	clock, cancel := context.WithTimeout(ctx, clockPatience)
	defer cancel()
	if !f.until(clock, func() bool { return m.synced }) {
		return nil, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	}
	answer := &machineapi.BootstrapResponse{Messages: []*machineapi.Bootstrap{{}}}
	held, noop := false, false
	f.change(func() {
		if held = f.state.disk(m.vm.ID).Etcd != nil; !held && f.noops > 0 {
			f.noops--
			noop = true // the fault: accepted, and nothing happens
		}
	})
	switch {
	case held:
		return nil, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case noop:
		return answer, nil
	}
	if !m.stopEtcd(ctx) {
		return nil, status.Errorf(codes.Unknown, "failed to stop etcd: %v", ctx.Err())
	}
	f.change(func() {
		if held = f.state.disk(m.vm.ID).Etcd != nil; !held {
			m.bootstrap = true
			m.services.set(etcdID, "Finished", "Bootstrap requested")
		}
	})
	if held {
		return nil, status.Error(codes.Unknown, "etcd data directory is not empty")
	}
	return answer, nil
}

// EtcdMemberList is etcd's list, from the machine's own etcd or from any that it can reach.
func (*api) EtcdMemberList(ctx context.Context, in *machineapi.EtcdMemberListRequest) (*machineapi.EtcdMemberListResponse, error) {
	m := target(ctx)
	if err := m.controlOnly("member list"); err != nil {
		return nil, err
	}
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	cluster, me := m.own()
	switch {
	case in.GetQueryLocal() && !m.member, cluster == nil, me == nil:
		return nil, f.hang(ctx)
	case in.GetQueryLocal() && me.Learner:
		return nil, status.Error(codes.Unavailable, learnerText)
	case cluster.leader == 0:
		return nil, status.Error(codes.Unavailable, "etcdserver: no leader")
	}
	answer := &machineapi.EtcdMembers{}
	for _, member := range cluster.Members {
		answer.LegacyMembers = append(answer.LegacyMembers, member.Name)
		answer.Members = append(answer.Members, &machineapi.EtcdMember{
			Id: member.ID, Hostname: member.Name, IsLearner: member.Learner,
			PeerUrls:   []string{"https://" + net.JoinHostPort(member.Address.String(), strconv.Itoa(constants.EtcdPeerPort))},
			ClientUrls: []string{"https://" + net.JoinHostPort(member.Address.String(), strconv.Itoa(constants.EtcdClientPort))},
		})
	}
	return &machineapi.EtcdMemberListResponse{Messages: []*machineapi.EtcdMembers{answer}}, nil
}

const learnerText = "etcdserver: rpc not supported for learner"

// hang is a call whose machine cannot reach an etcd, and that its client, which connects for as long as it may, gives no deadline of its
// own: EtcdMemberList and EtcdStatus in internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos 1.13. It waits for the
// caller's, without the lock that it was called under.
func (f *Fleet) hang(ctx context.Context) error {
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-ctx.Done():
	case <-f.ctx.Done():
	}
	return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
}

func notReached() error {
	return status.Error(codes.Unavailable, "failed to create etcd client: context deadline exceeded")
}

// EtcdStatus is what the machine's own etcd says.
func (*api) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machineapi.EtcdStatusResponse, error) {
	m := target(ctx)
	if err := m.controlOnly("etcd status"); err != nil {
		return nil, err
	}
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	cluster, me := m.own()
	if !m.member || cluster == nil || me == nil {
		return nil, f.hang(ctx)
	}
	report := &machineapi.EtcdMemberStatus{
		MemberId: me.ID, Leader: cluster.leader, IsLearner: me.Learner, RaftTerm: cluster.term,
		ProtocolVersion: "3.6.8", StorageVersion: "3.6", DbSize: 1 << 20, DbSizeInUse: 1 << 19,
	}
	if cluster.leader == 0 {
		report.Errors = []string{"etcdserver: no leader"}
	}
	// Each member tells of the alarms of all, in the protobuf's text: Status in server/etcdserver/api/v3rpc/maintenance.go of
	// etcd 3.6.8.
	for _, id := range cluster.Alarms {
		report.Errors = append(report.Errors, fmt.Sprintf("memberID:%d alarm:NOSPACE ", id))
	}
	return &machineapi.EtcdStatusResponse{Messages: []*machineapi.EtcdStatus{{MemberStatus: report}}}, nil
}

// EtcdAlarmDisarm clears the alarms of all members, whichever machine is asked: Talos 1.13 sends an empty AlarmMember, which
// etcd takes for all (internal/app/machined/internal/server/v1alpha1/v1alpha1_etcd.go).
func (*api) EtcdAlarmDisarm(ctx context.Context, _ *emptypb.Empty) (*machineapi.EtcdAlarmDisarmResponse, error) {
	m := target(ctx)
	if err := m.controlOnly("etcd alarm disarm"); err != nil {
		return nil, err
	}
	var err error
	m.fleet.change(func() {
		cluster, me := m.own()
		if !m.member || cluster == nil || me == nil || cluster.leader == 0 {
			err = notReached()
			return
		}
		cluster.Alarms = nil
		m.fleet.keep()
	})
	if err != nil {
		return nil, err
	}
	return &machineapi.EtcdAlarmDisarmResponse{Messages: []*machineapi.EtcdAlarmDisarm{{}}}, nil
}

// EtcdLeaveCluster takes the machine's own member out; its etcd ends, and its data goes.
func (*api) EtcdLeaveCluster(ctx context.Context, _ *machineapi.EtcdLeaveClusterRequest) (*machineapi.EtcdLeaveClusterResponse, error) {
	m := target(ctx)
	if err := m.controlOnly("etcd leave"); err != nil {
		return nil, err
	}
	if err := m.leaveEtcd(ctx); err != nil {
		return nil, err
	}
	return &machineapi.EtcdLeaveClusterResponse{Messages: []*machineapi.EtcdLeaveCluster{{}}}, nil
}

// EtcdRemoveMemberByID takes any member out. Only a member that is not there has a code of its own (EtcdRemoveMemberByID in
// internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos 1.13).
func (*api) EtcdRemoveMemberByID(ctx context.Context, in *machineapi.EtcdRemoveMemberByIDRequest) (*machineapi.EtcdRemoveMemberByIDResponse, error) {
	m := target(ctx)
	if err := m.controlOnly("etcd remove member"); err != nil {
		return nil, err
	}
	var err error
	m.fleet.change(func() {
		cluster, _ := m.own()
		switch {
		case cluster == nil || cluster.leader == 0:
			err = notReached()
		case cluster.member(in.GetMemberId()) == nil:
			err = status.Errorf(codes.NotFound, "failed to remove member %d: etcdserver: member not found", in.GetMemberId())
		default:
			if refused := m.fleet.removable(cluster, in.GetMemberId()); refused != nil {
				err = notRemoved("failed to remove member", in.GetMemberId(), refused)
				return
			}
			m.fleet.leave(cluster, in.GetMemberId())
		}
	})
	if err != nil {
		return nil, err
	}
	return &machineapi.EtcdRemoveMemberByIDResponse{Messages: []*machineapi.EtcdRemoveMemberByID{{}}}, nil
}

// List knows one folder, etcd's data.
func (*api) List(in *machineapi.ListRequest, stream machineapi.MachineService_ListServer) error {
	m := target(stream.Context())
	root := path.Clean("/" + in.GetRoot())
	m.fleet.mu.Lock()
	there := m.services.has(etcdID)
	full := m.fleet.state.disk(m.vm.ID).Etcd != nil
	m.fleet.mu.Unlock()
	if root != constants.EtcdDataPath || !there {
		return status.Errorf(codes.Unknown, "lstat %s: no such file or directory", root)
	}
	files := []*machineapi.FileInfo{{Name: root, RelativeName: ".", IsDir: true}}
	if full {
		files = append(files, &machineapi.FileInfo{Name: path.Join(root, "member"), RelativeName: "member", IsDir: true})
	}
	for _, file := range files {
		if err := stream.Send(file); err != nil {
			return err
		}
	}
	return nil
}

// Logs knows one log, Talos's own, and in it what services did, and who called, since the machine started.
func (*api) Logs(in *machineapi.LogsRequest, stream machineapi.MachineService_LogsServer) error {
	m := target(stream.Context())
	if in.GetNamespace() != constants.SystemContainerdNamespace || in.GetId() != "machined" || in.GetFollow() || in.GetTailLines() >= 0 {
		return status.Errorf(codes.Unknown, "the simulated machine has only the whole log of machined, as it is now")
	}
	m.fleet.mu.Lock()
	log := slices.Clone(m.services.text)
	m.fleet.mu.Unlock()
	return stream.Send(&common.Data{Bytes: log})
}

// Kubeconfig signs an administrator's kubeconfig with the cluster's authority.
func (*api) Kubeconfig(_ *emptypb.Empty, stream machineapi.MachineService_KubeconfigServer) error {
	m := target(stream.Context())
	if err := m.controlOnly("kubeconfig"); err != nil {
		return err
	}
	file, err := kubeconfig(m.settings())
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(file)), Mode: 0o600, ModTime: time.Now()}); err != nil {
		return err
	}
	if _, err := archive.Write(file); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return stream.Send(&common.Data{Bytes: packed.Bytes()})
}

func kubeconfig(conf *settings) ([]byte, error) {
	cluster := conf.provider.Cluster()
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(cluster.IssuingCA())
	if err != nil {
		return nil, fmt.Errorf("the cluster's certificate authority: %w", err)
	}
	admin := cluster.AdminKubeconfig()
	pair, err := x509.NewKeyPair(authority, x509.CommonName(admin.CommonName()), x509.Organization(admin.CertOrganization()),
		x509.NotBefore(time.Now().Add(-10*time.Second)), x509.NotAfter(time.Now().Add(admin.CertLifetime())),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		return nil, err
	}
	signed := x509.NewCertificateAndKeyFromKeyPair(pair)
	type object = map[string]any
	name, user := cluster.Name(), "admin@"+cluster.Name()
	return yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": user,
		"clusters": []object{{"name": name, "cluster": object{"server": cluster.Endpoint().String(), "certificate-authority-data": base64PEM(cluster.IssuingCA().Crt)}}},
		"contexts": []object{{"name": user, "context": object{"cluster": name, "namespace": "default", "user": user}}},
		"users":    []object{{"name": user, "user": object{"client-certificate-data": base64PEM(signed.Crt), "client-key-data": base64PEM(signed.Key)}}},
	})
}

// Reboot restarts the machine.
func (*api) Reboot(ctx context.Context, _ *machineapi.RebootRequest) (*machineapi.RebootResponse, error) {
	target(ctx).order(commandReboot)
	return &machineapi.RebootResponse{Messages: []*machineapi.Reboot{{ActorId: actor()}}}, nil
}

// Shutdown switches the machine off.
func (*api) Shutdown(ctx context.Context, _ *machineapi.ShutdownRequest) (*machineapi.ShutdownResponse, error) {
	target(ctx).order(commandShutdown)
	return &machineapi.ShutdownResponse{Messages: []*machineapi.Shutdown{{ActorId: actor()}}}, nil
}

// Reset answers at once; what it does comes afterwards, and that it failed is told to nobody but the log (Reset in
// internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos 1.13).
func (*api) Reset(ctx context.Context, in *machineapi.ResetRequest) (*machineapi.ResetResponse, error) {
	m := target(ctx)
	go m.reset(in)
	return &machineapi.ResetResponse{Messages: []*machineapi.Reset{{ActorId: actor()}}}, nil
}
