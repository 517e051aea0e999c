package talos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"

	"tazlab.net/castle/ci/sandbox/profile"
)

// yard is a fleet with a person's means: machinery's own configuration and client, nothing of the product.
type yard struct {
	t     *testing.T
	fleet *Fleet
	input *generate.Input
	admin *clientconfig.Context
	net   string // "127.77.201."
	names map[int]string

	mu    sync.Mutex
	calls []string
	pulls func(ctx context.Context, image string) error // how a pull goes; nil: at once and well
}

var yards struct {
	sync.Mutex
	next int
}

var commonBundle = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewFixedClock(time.Now().Add(-time.Hour)), config.TalosVersion1_13)
})

func newYard(t *testing.T, scale float64, faults ...string) *yard {
	t.Helper()
	parsed, err := profile.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.New(profile.NameHomelab, scale, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return newYardOf(t, p)
}

func newYardOf(t *testing.T, p profile.Profile) *yard {
	t.Helper()
	yards.Lock()
	yards.next++
	y := &yard{t: t, net: fmt.Sprintf("127.77.%d.", 100+yards.next), names: map[int]string{}}
	yards.Unlock()
	bundle, err := commonBundle()
	if err != nil {
		t.Fatal(err)
	}
	y.input, err = generate.NewInput("yard", "https://"+y.net+"210:6443", "1.36.2", generate.WithSecretsBundle(bundle),
		generate.WithVersionContract(config.TalosVersion1_13), generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage("example.org/installer:v1.13.1"))
	if err != nil {
		t.Fatal(err)
	}
	y.admin = y.credentials(role.Admin)
	port, err := net.Listen("tcp", y.net+"1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = port.Close() // only its number was wanted
	y.fleet, err = New(Options{Profile: p, Cluster: y, State: filepath.Join(t.TempDir(), "talos.json"),
		Template: Template{Talos: "v1.13.9", Schematic: "613e", Extensions: []string{"siderolabs/iscsi-tools"}},
		Port:     port.Addr().(*net.TCPAddr).AddrPort().Port(),
		Listen:   func(at netip.AddrPort) (net.Listener, error) { return net.Listen("tcp", at.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = y.fleet.Close() })
	return y
}

func (y *yard) credentials(roles ...role.Role) *clientconfig.Context {
	y.t.Helper()
	pair, err := y.input.Options.SecretsBundle.GenerateTalosAPIClientCertificate(role.MakeSet(roles...))
	if err != nil {
		y.t.Fatal(err)
	}
	return clientconfig.NewConfig("yard", nil, y.input.Options.SecretsBundle.Certs.OS.Crt, pair).Contexts["yard"]
}

// on starts machine number i, whose address ends in 10+i.
func (y *yard) on(i int) { y.power(i, false) }

// power switches a machine on, which is a clone or bare.
func (y *yard) power(i int, bare bool) {
	y.t.Helper()
	if err := y.fleet.PowerOn(VM{ID: i, Name: fmt.Sprint("vm-", i), Address: netip.MustParsePrefix(y.address(i) + "/24"),
		Gateway: netip.MustParseAddr(y.net + "1"), MemoryMiB: 4096, MAC: "bc:24:11:00:00:01", Bare: bare}); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) address(i int) string { return fmt.Sprint(y.net, 10+i) }

// at is a client for machine number i; nil credentials are for maintenance mode.
func (y *yard) at(i int, credentials *clientconfig.Context) *client.Client {
	y.t.Helper()
	endpoint := fmt.Sprint(y.address(i), ":", y.fleet.Port)
	options := []client.OptionFunc{client.WithGRPCDialOptions(grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 50 * time.Millisecond}, MinConnectTimeout: 2 * time.Second}))}
	if credentials == nil {
		options = append(options, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
	} else {
		options = append(options, client.WithConfigContext(credentials))
	}
	c, err := client.New(context.Background(), append(options, client.WithEndpoints(endpoint))...)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (y *yard) stage(i int, stage string) {
	y.t.Helper()
	y.eventually(fmt.Sprint("stage ", stage, " of machine ", i), func() bool { return y.fleet.Stage(i) == stage })
}

func (y *yard) eventually(what string, condition func() bool) {
	y.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			y.t.Fatalf("%s did not happen", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (y *yard) config(i int, kind machinetype.Type) []byte {
	y.t.Helper()
	generated, err := y.input.Config(kind)
	if err != nil {
		y.t.Fatal(err)
	}
	hostname := network.NewHostnameConfigV1Alpha1()
	hostname.ConfigHostname = cmp.Or(y.names[i], fmt.Sprint("node-", i))
	documents := generated.Documents()[:0:0]
	for _, document := range generated.Documents() {
		if document.Kind() != network.HostnameKind {
			documents = append(documents, document)
		}
	}
	documents = append(documents, hostname)
	if kind == machinetype.TypeControlPlane {
		vip := network.NewLayer2VIPConfigV1Alpha1(y.net + "210")
		vip.LinkName = "eth0"
		documents = append(documents, vip)
	}
	provider, err := container.New(documents...)
	if err != nil {
		y.t.Fatal(err)
	}
	data, err := provider.Bytes()
	if err != nil {
		y.t.Fatal(err)
	}
	return data
}

func (y *yard) apply(i int, kind machinetype.Type) {
	y.t.Helper()
	y.stage(i, stageMaintenance)
	if _, err := y.at(i, nil).ApplyConfiguration(context.Background(), &machineapi.ApplyConfigurationRequest{Data: y.config(i, kind)}); err != nil {
		y.t.Fatal(err)
	}
}

// cluster makes control planes 1 to n, bootstrapped on the first.
func (y *yard) cluster(n int) {
	y.t.Helper()
	for i := 1; i <= n; i++ {
		y.on(i)
		y.apply(i, machinetype.TypeControlPlane)
	}
	for i := 1; i <= n; i++ {
		y.stage(i, stageRunning)
	}
	if err := y.at(1, y.admin).Bootstrap(context.Background(), &machineapi.BootstrapRequest{}); err != nil {
		y.t.Fatal(err)
	}
	y.eventually("all members vote", func() bool { return y.voters(1) == n })
}

func (y *yard) members(i int) []*machineapi.EtcdMember {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	response, err := y.at(i, y.admin).EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return nil
	}
	return response.GetMessages()[0].GetMembers()
}

func (y *yard) voters(i int) int {
	n := 0
	for _, member := range y.members(i) {
		if !member.GetIsLearner() {
			n++
		}
	}
	return n
}

func (y *yard) note(call string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.calls = append(y.calls, call)
}

func (y *yard) noted() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.calls)
}

func (y *yard) last(prefix string) string {
	all := y.noted()
	for i := len(all) - 1; i >= 0; i-- {
		if strings.HasPrefix(all[i], prefix) {
			return all[i]
		}
	}
	return ""
}

func (y *yard) ControlPlaneUp(_ context.Context, node Node, _ ControlPlane) error {
	y.note("control " + node.Name + " up")
	return nil
}
func (y *yard) ControlPlaneDown(node Node) { y.note("control " + node.Name + " down") }
func (y *yard) NodeUp(_ context.Context, node Node) error {
	y.note("node " + node.Name + " up")
	y.note(fmt.Sprint("marks of ", node.Name, " ", node.Labels, node.Taints))
	return nil
}
func (y *yard) NodeDown(node Node) { y.note("node " + node.Name + " down") }
func (y *yard) Pull(ctx context.Context, node Node, image string) error {
	y.note("pull " + image + " on " + node.Name)
	y.mu.Lock()
	pulls := y.pulls
	y.mu.Unlock()
	if pulls == nil {
		return nil
	}
	return pulls(ctx, image)
}
func (y *yard) VIP(_ netip.Addr, holder *Node) {
	if holder == nil {
		y.note("vip none")
	} else {
		y.note("vip " + holder.Name)
	}
}

func TestMaintenanceModeReadsAndTakesAConfigurationAndNothingElse(t *testing.T) {
	y := newYard(t, 0)
	y.on(1)
	y.stage(1, stageMaintenance)
	c := y.at(1, nil)
	ctx := context.Background()
	if _, err := c.Version(ctx); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"bootstrap": c.Bootstrap(ctx, &machineapi.BootstrapRequest{}),
		"reboot":    c.Reboot(ctx),
		"reset":     c.Reset(ctx, false, true),
	} {
		if client.StatusCode(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "not authorized") {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := safe.StateListAll[*runtime.ExtensionStatus](ctx, c.COSI)
	if err != nil {
		t.Fatal(err)
	}
	var extensions []string
	for extension := range list.All() {
		extensions = append(extensions, extension.TypedSpec().Metadata.Name)
	}
	if !slices.Equal(extensions, []string{"iscsi-tools", "schematic"}) {
		t.Errorf("its extensions are %v", extensions)
	}
	if _, err := c.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{}); client.StatusCode(err) != codes.Unimplemented ||
		!strings.Contains(err.Error(), "member list is only available on control plane nodes") {
		t.Errorf("member list: %v", err)
	}
	if _, err := c.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{Data: []byte("machine: {}")}); client.StatusCode(err) != codes.InvalidArgument {
		t.Errorf("a broken configuration: %v", err)
	}
	if _, err := y.at(1, y.admin).Version(ctx); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("its certificate is not its own: %v", err)
	}
}

func TestAConfiguredMachineAsksForACertificateAndItsRole(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(1)
	ctx := context.Background()
	if _, err := y.at(1, nil).Version(ctx); err == nil {
		t.Error("it answers without a certificate")
	}
	reader := y.at(1, y.credentials(role.Reader))
	if _, err := reader.ServiceList(ctx); err != nil {
		t.Error(err)
	}
	if _, err := reader.Kubeconfig(ctx); client.StatusCode(err) != codes.PermissionDenied {
		t.Errorf("a reader's kubeconfig: %v", err)
	}
	if _, err := reader.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{Data: y.config(1, machinetype.TypeControlPlane)}); client.StatusCode(err) != codes.PermissionDenied {
		t.Errorf("a reader's configuration: %v", err)
	}
	version, err := y.at(1, y.admin).Version(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if tag := version.GetMessages()[0].GetVersion().GetTag(); tag != "v1.13.9" {
		t.Errorf("version %s, wanted the template's: its configuration names the installer of v1.13.1, which does not run", tag)
	}
}

func TestAWorkerComesUpOnlyBesideAControlPlane(t *testing.T) {
	y := newYard(t, 0)
	y.on(4)
	y.apply(4, machinetype.TypeWorker)
	y.stage(4, stageConfiguring)
	time.Sleep(100 * time.Millisecond)
	if _, err := y.at(4, y.admin).Version(context.Background()); err == nil {
		t.Error("it got a certificate without a control plane")
	}
	y.cluster(1)
	y.stage(4, stageRunning)
	if err := y.at(4, y.admin).Bootstrap(context.Background(), &machineapi.BootstrapRequest{}); client.StatusCode(err) != codes.Unimplemented {
		t.Errorf("bootstrap of a worker: %v", err)
	}
	y.eventually("its kubelet", func() bool { return y.last("node node-4") == "node node-4 up" })
}

func TestTheVirtualAddressFollowsTheQuorum(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(3)
	y.eventually("a holder", func() bool { return y.last("vip") == "vip node-1" })
	off := func(i int) {
		if err := y.fleet.PowerOff(i); err != nil {
			t.Fatal(err)
		}
	}
	off(1)
	y.eventually("another holder", func() bool { return y.last("vip") == "vip node-2" })
	y.eventually("the first control plane's end", func() bool { return y.last("control node-1") == "control node-1 down" })
	off(2)
	y.eventually("no holder", func() bool { return y.last("vip") == "vip none" })
	y.eventually("no control plane without a quorum", func() bool { return y.last("control node-3") == "control node-3 down" })
	if _, err := y.at(3, y.admin).EtcdMemberList(context.Background(), &machineapi.EtcdMemberListRequest{}); err == nil {
		t.Error("a member list without a quorum")
	}
	y.on(2)
	y.eventually("a holder again", func() bool { return strings.HasPrefix(y.last("vip"), "vip node-") })
	y.eventually("the control plane again", func() bool { return y.last("control node-3") == "control node-3 up" })
}

func TestLabelsAndTaintsFollowTheConfigurationWithoutARestart(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(1)
	const role = "node-role.kubernetes.io/control-plane:"
	want := "marks of node-1 map[" + role + " node.kubernetes.io/exclude-from-external-load-balancers:] map[" + role + ":NoSchedule]"
	y.eventually("its kubelet", func() bool { return y.last("marks of node-1") == want })
	y.input.Options.AllowSchedulingOnControlPlanes = true
	data := bytes.Replace(y.config(1, machinetype.TypeControlPlane), []byte("node.kubernetes.io/exclude-from-external-load-balancers: \"\""), []byte("own: label"), 1)
	request := &machineapi.ApplyConfigurationRequest{Data: data, Mode: machineapi.ApplyConfigurationRequest_NO_REBOOT}
	if _, err := y.at(1, y.admin).ApplyConfiguration(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	y.eventually("the other labels", func() bool { return y.last("marks of node-1") == "marks of node-1 map["+role+" own:label] map[]" })
	if y.last("node node-1") != "node node-1 up" {
		t.Error("the node went down for it")
	}
}

// What Talos says holds what differs, which is what a caller must not hand on.
func TestAChangeThatNeedsARestartIsToldAsTalosTellsIt(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(1)
	c := y.at(1, y.admin)
	changed := func(old, by string) []byte {
		t.Helper()
		data := y.config(1, machinetype.TypeControlPlane)
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("there is no %q in the configuration", old)
		}
		return bytes.Replace(data, []byte(old), []byte(by), 1)
	}
	apply := func(data []byte, mode machineapi.ApplyConfigurationRequest_Mode, dry bool) (string, error) {
		answer, err := c.ApplyConfiguration(t.Context(), &machineapi.ApplyConfigurationRequest{Data: data, Mode: mode, DryRun: dry})
		if err != nil {
			return "", err
		}
		return answer.GetMessages()[0].GetModeDetails(), nil
	}
	const (
		auto = machineapi.ApplyConfigurationRequest_AUTO
		now  = machineapi.ApplyConfigurationRequest_NO_REBOOT
		why  = "this config change can't be applied in immediate mode\ndiff:\n--- a\n+++ b\n"
	)
	if _, err := apply(changed("port: 7445", "port: 7446"), now, false); err != nil { // KubePrism's
		t.Errorf("a feature that needs no restart: %v", err)
	}
	token := changed("\n    token: ", "\n    token: another.")
	if details, err := apply(token, auto, true); err != nil || !strings.HasPrefix(details, "Dry run summary:\nApplied configuration with a reboot (skipped in dry-run).\nConfig diff:\n\n--- a\n") {
		t.Errorf("a dry run: %q, %v", details, err)
	}
	if _, err := apply(token, now, false); client.StatusCode(err) != codes.InvalidArgument || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "+    token: another.") {
		t.Errorf("without a restart: %v", err)
	}
	if details, err := apply(token, auto, false); err != nil || !strings.HasPrefix(details, "Applied configuration with a reboot: "+why) {
		t.Errorf("with a restart: %q, %v", details, err)
	}
}

func TestASecondBootstrapIsRefusedByTheData(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(3)
	err := y.at(2, y.admin).Bootstrap(context.Background(), &machineapi.BootstrapRequest{})
	if client.StatusCode(err) != codes.AlreadyExists {
		t.Errorf("on a member: %v", err)
	}
}

func TestEtcdLetsOneLearnerInAtATimeAndForgetsWhoWasCut(t *testing.T) {
	y := newYard(t, 0.02) // EtcdPromote 900 ms
	y.cluster(1)
	for _, i := range []int{2, 3} {
		y.on(i)
		y.apply(i, machinetype.TypeControlPlane)
	}
	learners := func() (names []string) {
		for _, member := range y.members(1) {
			if member.GetIsLearner() {
				names = append(names, member.GetHostname())
			}
		}
		return names
	}
	y.eventually("a learner whose etcd runs", func() bool { return len(learners()) > 0 && learners()[0] != "" })
	cut := map[string]int{"node-2": 2, "node-3": 3}[learners()[0]]
	if err := y.fleet.PowerOff(cut); err != nil {
		t.Fatal(err)
	}
	y.on(cut)
	y.stage(cut, stageRunning)
	time.Sleep(3 * time.Second) // three times as long as a promotion takes
	if n := len(y.members(1)); n != 2 || len(learners()) != 1 {
		t.Errorf("%d members, of which %v are learners", n, learners())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := y.at(5-cut, y.admin).EtcdStatus(ctx); client.StatusCode(err) != codes.DeadlineExceeded || time.Since(began) < 250*time.Millisecond {
		t.Errorf("a machine that is no member answered after %s: %v", time.Since(began), err)
	}
}

// Its address is taken, and Talos takes a member for its own by the name that it does not have yet.
func TestWhoWasCutBeforeItsEtcdStartedWaitsUntilItsMemberIsTakenOut(t *testing.T) {
	y := newYard(t, 1)
	y.fleet.Profile.Delays = profile.Delays{EtcdJoin: 3 * time.Second}
	y.cluster(1)
	y.on(2)
	y.apply(2, machinetype.TypeControlPlane)
	y.eventually("a member without a name", func() bool { return len(y.members(1)) == 2 })
	left := y.members(1)[1]
	if left.GetHostname() != "" || !left.GetIsLearner() {
		t.Fatalf("it is %v", left)
	}
	if err := y.fleet.PowerOff(2); err != nil {
		t.Fatal(err)
	}
	y.on(2)
	y.stage(2, stageRunning)
	time.Sleep(4 * time.Second) // longer than a join takes
	if members := y.members(1); len(members) != 2 || members[1].GetId() != left.GetId() {
		t.Errorf("the members are %v", members)
	}
	if err := y.at(1, y.admin).EtcdRemoveMemberByID(t.Context(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: left.GetId()}); err != nil {
		t.Fatal(err)
	}
	y.eventually("it votes", func() bool { return y.voters(1) == 2 })
}

func TestTheVirtualAddressIsLeasedToWhoWasCut(t *testing.T) {
	y := newYard(t, 0.02) // VIPLease 1.2 s
	y.cluster(3)
	y.eventually("a holder", func() bool { return y.last("vip") == "vip node-1" })
	if err := y.fleet.PowerOff(1); err != nil {
		t.Fatal(err)
	}
	y.eventually("no holder", func() bool { return y.last("vip") == "vip none" })
	began := time.Now()
	y.eventually("another holder", func() bool { return y.last("vip") == "vip node-2" })
	if took := time.Since(began); took < time.Second {
		t.Errorf("another one had it after %s", took)
	}
	y.on(1)
	y.eventually("the first one again", func() bool { return y.last("control node-1") == "control node-1 up" })
	for _, end := range []struct {
		by   func() error
		next string
	}{
		{func() error { return y.at(2, y.admin).Reboot(context.Background()) }, "vip node-1"},
		{func() error { return y.at(1, y.admin).Shutdown(context.Background()) }, "vip node-2"},
	} {
		y.eventually("all members vote", func() bool { return y.voters(3) == 3 && y.last("control node-2") == "control node-2 up" })
		began = time.Now()
		if err := end.by(); err != nil {
			t.Fatal(err)
		}
		y.eventually("the next holder", func() bool { return y.last("vip") == end.next })
		if took := time.Since(began); took > time.Second {
			t.Errorf("one that ended in order kept it for %s from %s", took, end.next)
		}
	}
}

func TestAnAPIServerThatRestartsGivesTheVirtualAddressAway(t *testing.T) {
	y := newYard(t, 0, "apiserver-restarts=300ms")
	y.cluster(3)
	y.eventually("its end", func() bool { return slices.Contains(y.noted(), "control node-1 down") })
	y.eventually("another holder", func() bool { return y.last("vip") == "vip node-2" })
	y.eventually("its start", func() bool { return y.last("control node-1") == "control node-1 up" })
	for _, other := range []string{"control node-2 down", "control node-3 down"} {
		if slices.Contains(y.noted(), other) {
			t.Error(other)
		}
	}
}

func TestABootstrapWaitsForTheClockAndHonoursItsCallersDeadline(t *testing.T) {
	y := newYard(t, 0, "time-late=1s", "bootstrap-slow=1s")
	y.on(1)
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageRunning)
	etcd := func() string {
		list, err := y.at(1, y.admin).ServiceList(context.Background())
		if err != nil {
			return err.Error()
		}
		for _, info := range list.GetMessages()[0].GetServices() {
			if info.GetId() == etcdID {
				return info.GetState()
			}
		}
		return ""
	}
	bootstrap := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return y.at(1, y.admin).Bootstrap(ctx, &machineapi.BootstrapRequest{})
	}
	// The machine's own answer, which it gives at the caller's deadline, may come before the caller gives up.
	refused := []codes.Code{codes.DeadlineExceeded, codes.FailedPrecondition}
	if err := bootstrap(200 * time.Millisecond); !slices.Contains(refused, client.StatusCode(err)) || etcd() != "Waiting" {
		t.Errorf("before its clock is in step, etcd is %s: %v", etcd(), err)
	}
	y.eventually("etcd prepares", func() bool { return etcd() == "Preparing" })
	if err := bootstrap(200 * time.Millisecond); client.StatusCode(err) != codes.DeadlineExceeded {
		t.Errorf("it was not cut: %v", err)
	}
	y.eventually("etcd is stopped all the same", func() bool { return etcd() == "Finished" })
	if err := bootstrap(5 * time.Second); err != nil {
		t.Error(err)
	}
	y.eventually("a member", func() bool { return y.voters(1) == 1 })
}

func TestAnAddressIsGivenToOneMemberOnly(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(3)
	replace := func(name string) {
		if err := y.fleet.Removed(3); err != nil {
			t.Fatal(err)
		}
		y.names[3] = name
		y.on(3)
		y.apply(3, machinetype.TypeControlPlane)
		y.stage(3, stageRunning)
	}
	id := func(name string) uint64 {
		for _, member := range y.members(1) {
			if member.GetHostname() == name && !member.GetIsLearner() {
				return member.GetId()
			}
		}
		return 0
	}

	// An empty machine of the same name takes the old member out.
	old := id("node-3")
	replace("node-3")
	y.eventually("the new member", func() bool { return y.voters(1) == 3 && id("node-3") != 0 && id("node-3") != old })

	// One of another name does not get the address before somebody has removed the old member.
	replace("other")
	time.Sleep(200 * time.Millisecond)
	if y.members(3) != nil || id("node-3") == 0 {
		t.Error("the address was given twice")
	}
	if err := y.at(1, y.admin).EtcdRemoveMemberByID(context.Background(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: id("node-3")}); err != nil {
		t.Fatal(err)
	}
	y.eventually("the other member", func() bool { return y.voters(1) == 3 && id("other") != 0 })
}

func TestAResetMachineIsBackInMaintenanceModeAndOutOfEtcd(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(3)
	err := y.at(3, y.admin).ResetGeneric(context.Background(), &machineapi.ResetRequest{Graceful: true, Reboot: true,
		SystemPartitionsToWipe: []*machineapi.ResetPartitionSpec{{Label: "STATE", Wipe: true}, {Label: "EPHEMERAL", Wipe: true}}})
	if err != nil {
		t.Fatal(err)
	}
	y.stage(3, stageMaintenance)
	if n := len(y.members(1)); n != 2 {
		t.Errorf("%d members are left", n)
	}
}

func TestARestartedMachineComesBackAndOneShutDownStaysOff(t *testing.T) {
	y := newYard(t, 0)
	stopped := make(chan int, 1)
	y.fleet.Stopped = func(id int) { stopped <- id }
	y.cluster(1)
	y.eventually("the node", func() bool { return y.last("node node-1") == "node node-1 up" })
	if err := y.at(1, y.admin).Reboot(context.Background()); err != nil {
		t.Fatal(err)
	}
	y.eventually("the node's end", func() bool {
		return y.last("node node-1") == "node node-1 down" || slices.Contains(y.noted(), "node node-1 down")
	})
	y.eventually("the node again", func() bool { return y.last("node node-1") == "node node-1 up" && y.voters(1) == 1 })
	if err := y.at(1, y.admin).Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if id := <-stopped; id != 1 || y.fleet.Running(1) {
		t.Errorf("machine %d, running %v", id, y.fleet.Running(1))
	}
}

func TestOneEndpointSpeaksForOtherNodes(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(2)
	response, err := y.at(1, y.admin).MachineClient.Hostname(client.WithNodes(context.Background(), y.address(1), y.address(2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, message := range response.GetMessages() {
		got = append(got, message.GetMetadata().GetHostname()+" "+message.GetHostname())
	}
	if wanted := []string{y.address(1) + " node-1", y.address(2) + " node-2"}; !slices.Equal(got, wanted) {
		t.Errorf("%q, wanted %q", got, wanted)
	}
	if _, err := y.at(1, y.admin).Kubeconfig(client.WithNode(context.Background(), y.address(2))); err != nil {
		t.Error(err)
	}
}

func TestAPowerCutWhileInstallingLeavesABlankDisk(t *testing.T) {
	y := newYard(t, 0.02)
	y.power(1, true)
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageInstalling)
	if err := y.fleet.PowerOff(1); err != nil {
		t.Fatal(err)
	}
	y.power(1, true)
	y.stage(1, stageMaintenance)
}

// A template has Talos on its disk: nothing is installed, and the configuration is kept at once.
func TestAMachineFromATemplateIsConfiguredWithoutARestart(t *testing.T) {
	y := newYard(t, 0.02)
	y.on(1)
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageConfiguring)
	if err := y.fleet.PowerOff(1); err != nil {
		t.Fatal(err)
	}
	y.on(1)
	y.stage(1, stageRebooting)
	y.stage(1, stageRunning)
}

// gRPC's server waits two minutes for a handshake; a machine that restarts or loses its power does not.
func TestACallerWhoNeverSpeaksKeepsNoMachineFromGoing(t *testing.T) {
	y := newYard(t, 0)
	mute := func() {
		y.t.Helper()
		connection, err := net.Dial("tcp", fmt.Sprint(y.address(1), ":", y.fleet.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
	}
	y.on(1)
	y.stage(1, stageMaintenance)
	mute()
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageRunning)
	mute()
	off := make(chan error, 1)
	go func() { off <- y.fleet.PowerOff(1) }()
	select {
	case err := <-off:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the machine still has power")
	}
}

func TestEtcdLetsNoMemberGoThatItsQuorumNeeds(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(3)
	remove := func(name string) error {
		for _, member := range y.members(1) {
			if member.GetHostname() == name {
				return y.at(1, y.admin).EtcdRemoveMemberByID(context.Background(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: member.GetId()})
			}
		}
		return fmt.Errorf("%s is no member", name)
	}
	if err := y.fleet.PowerOff(3); err != nil {
		t.Fatal(err)
	}
	if err := remove("node-2"); err == nil || !strings.Contains(err.Error(), "failed to remove member: failed to remove member ") || !strings.Contains(err.Error(), "etcdserver: unhealthy cluster") {
		t.Errorf("of two that run, one was taken out: %v", err)
	}
	if err := errors.Join(remove("node-3"), remove("node-2")); err != nil {
		t.Error(err)
	}
	if err := remove("node-1"); err == nil || !strings.Contains(err.Error(), "not enough started members") {
		t.Errorf("the last member was taken out: %v", err)
	}
	err := y.at(1, y.admin).EtcdLeaveCluster(context.Background(), &machineapi.EtcdLeaveClusterRequest{})
	if err == nil || !strings.Contains(err.Error(), "failed to leave cluster: failed to remove member ") || !strings.Contains(err.Error(), "not enough started members") {
		t.Errorf("the last member left: %v", err)
	}
	err = y.at(1, y.admin).EtcdRemoveMemberByID(context.Background(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: 1})
	if client.StatusCode(err) != codes.NotFound || !strings.Contains(err.Error(), "failed to remove member 1: etcdserver: member not found") {
		t.Errorf("nobody was taken out: %v", err)
	}
}

func TestAMachineThatLeavesEtcdKeepsNothingOfIt(t *testing.T) {
	y := newYard(t, 0)
	stopped := make(chan int, 1)
	y.fleet.Stopped = func(id int) { stopped <- id }
	y.cluster(3)
	for range 2 { // the second time, there is nothing to leave
		if err := y.at(3, y.admin).EtcdLeaveCluster(context.Background(), &machineapi.EtcdLeaveClusterRequest{}); err != nil && client.StatusCode(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
	if n := len(y.members(1)); n != 2 {
		t.Errorf("%d members are left", n)
	}
	if err := y.at(3, y.admin).ResetGeneric(context.Background(), &machineapi.ResetRequest{Graceful: true}); err != nil {
		t.Fatal(err)
	}
	if id := <-stopped; id != 3 {
		t.Errorf("machine %d is off", id)
	}
	y.on(3)
	y.stage(3, stageBooting) // and never further: nothing is left to start from
}

func TestAMemberIsNotLetGoWhileAnotherHasJustStarted(t *testing.T) {
	y := newYardOf(t, profile.Profile{Scale: 1, Delays: profile.Delays{EtcdSettles: time.Hour}})
	y.cluster(3)
	for _, member := range y.members(1) {
		err := y.at(1, y.admin).EtcdRemoveMemberByID(context.Background(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: member.GetId()})
		if err == nil || !strings.HasSuffix(err.Error(), "etcdserver: unhealthy cluster") {
			t.Errorf("%s was taken out: %v", member.GetHostname(), err)
		}
	}
	left := make(chan error, 1)
	go func() {
		left <- y.at(3, y.admin).EtcdLeaveCluster(context.Background(), &machineapi.EtcdLeaveClusterRequest{})
	}()
	select {
	case err := <-left:
		t.Fatalf("it did not try again: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	y.fleet.change(func() { // an hour later
		for _, m := range y.fleet.machines {
			m.began = m.began.Add(-time.Hour)
		}
	})
	if err := <-left; err != nil || len(y.members(1)) != 2 {
		t.Errorf("%d members are left: %v", len(y.members(1)), err)
	}
}

func TestWhoLeavesWhileEtcdStopsFindsItsData(t *testing.T) {
	y := newYardOf(t, profile.Profile{Scale: 1, Delays: profile.Delays{EtcdLeave: 3 * time.Second}})
	y.cluster(3)
	ctx, cut := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- y.at(3, y.admin).EtcdLeaveCluster(ctx, &machineapi.EtcdLeaveClusterRequest{}) }()
	y.eventually("its member is out", func() bool { return len(y.members(1)) == 2 })
	cut()
	if err := <-left; err == nil {
		t.Error("it left at once")
	}
	data := func() bool {
		y.fleet.mu.Lock()
		defer y.fleet.mu.Unlock()
		return y.fleet.state.disk(3).Etcd != nil
	}
	if !data() {
		t.Error("its data is gone")
	}
	if err := y.at(3, y.admin).EtcdLeaveCluster(context.Background(), &machineapi.EtcdLeaveClusterRequest{}); err != nil || data() {
		t.Errorf("the second call did not go on: %v", err)
	}
}
