package machineconfig_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// commonSecrets serve all tests: making an RSA key takes a second.
var commonSecrets = sync.OnceValues(func() ([]byte, error) {
	return machineconfig.NewSecrets(&clusterconfig.Cluster{Name: "sandbox", Talos: clusterconfig.Talos{Version: "v1.13.9"}})
})

// described is a description that ships with the program.
func described(t *testing.T, name string) (*clusterconfig.Cluster, *machineconfig.Bundle) {
	t.Helper()
	c, err := clusterconfig.Load("../../../../terragrunt/live/" + name)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := commonSecrets()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := machineconfig.ParseSecrets(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return c, bundle
}

func TestTheMachineConfigurationSaysWhatTheDescriptionSays(t *testing.T) {
	c, bundle := described(t, "blue")
	configs, _, err := machineconfig.Configs(c, bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range c.Nodes {
		control := node.Role == clusterconfig.RoleControlPlane
		data, err := configs[node.Name].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := configloader.NewFromBytes(data) // as the machine reads it
		if err != nil {
			t.Fatalf("%s: %v", node.Name, err)
		}
		if got := parsed.NetworkHostnameConfig().Hostname(); got != node.Name {
			t.Errorf("%s: hostname %q", node.Name, got)
		}
		if image := parsed.Machine().Install().Image(); image != "factory.talos.dev/nocloud-installer/613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245:v1.13.9" {
			t.Errorf("%s: installer %s", node.Name, image)
		}
		if disk := parsed.Machine().Install().Disk(); disk != "/dev/sda" {
			t.Errorf("%s: disk %s", node.Name, disk)
		}
		links := parsed.NetworkCommonLinkConfigs()
		if len(links) != 1 || links[0].Addresses()[0].Address().String() != node.Address.String()+"/24" {
			t.Errorf("%s: links %v", node.Name, links)
		} else if gateway := links[0].Routes()[0].Gateway().ValueOrZero(); gateway.String() != "192.168.1.1" {
			t.Errorf("%s: gateway %s", node.Name, gateway)
		}
		if servers := parsed.NetworkResolverConfig().Resolvers(); len(servers) != 1 || servers[0].String() != "192.168.1.1" {
			t.Errorf("%s: DNS %s", node.Name, servers)
		}
		virtual := parsed.NetworkVirtualIPConfigs()
		if control != (len(virtual) == 1) || control && virtual[0].VIP() != c.Endpoint {
			t.Errorf("%s: virtual addresses %v", node.Name, virtual)
		}
		if sans := strings.Join(parsed.Machine().Security().CertSANs(), " "); !strings.Contains(sans, "192.168.1.210") {
			t.Errorf("%s: certificate names %s", node.Name, sans)
		}
		if volume, there := parsed.Volumes().ByName("EPHEMERAL"); !there || volume.Encryption() == nil || volume.Encryption().Keys()[0].NodeID() == nil {
			t.Errorf("%s: EPHEMERAL is not encrypted by the node's id", node.Name)
		}
		var modules []string
		for _, module := range parsed.Machine().Kernel().Modules() {
			modules = append(modules, module.Name())
		}
		if strings.Join(modules, " ") != "iscsi_tcp dm_crypt" {
			t.Errorf("%s: modules %s", node.Name, modules)
		}
		mount := parsed.Machine().Kubelet().ExtraMounts()
		if len(mount) != 1 || mount[0].Destination != "/var/lib/longhorn" || !strings.Contains(strings.Join(mount[0].Options, " "), "rshared") {
			t.Errorf("%s: mounts %v", node.Name, mount)
		}
		if subnets := strings.Join(parsed.Machine().Kubelet().NodeIP().ValidSubnets(), " "); subnets != "192.168.1.0/24 !192.168.1.210/32" {
			t.Errorf("%s: subnets of the node's address %s", node.Name, subnets)
		}
		if endpoint := parsed.Cluster().Endpoint().String(); endpoint != "https://192.168.1.210:6443" {
			t.Errorf("%s: endpoint %s", node.Name, endpoint)
		}
		if image := parsed.Machine().Kubelet().Image(); image != "ghcr.io/siderolabs/kubelet:"+c.Kubernetes.Version {
			t.Errorf("%s: kubelet %s", node.Name, image)
		}
		if pods, services := parsed.Cluster().Network().PodCIDRs(), parsed.Cluster().Network().ServiceCIDRs(); pods[0] != "10.244.0.0/16" || services[0] != "10.96.0.0/16" {
			t.Errorf("%s: networks %s %s", node.Name, pods, services)
		}
		if control && parsed.Cluster().ScheduleOnControlPlanes() {
			t.Errorf("%s takes workloads", node.Name)
		}
		if worker := bytes.Contains(data, bundle.Certs.OS.Key); worker && !control {
			t.Errorf("%s holds a key that only control planes may have", node.Name)
		}
	}
}

// MetalLB announces nothing on nodes with that label, and the scheduler puts nothing on tainted ones.
func TestControlPlanesTakePodsWhereThereIsNoWorker(t *testing.T) {
	c, bundle := described(t, "blue")
	for _, alone := range []bool{false, true} {
		if alone {
			c.Nodes = c.ControlPlanes()[:1]
		}
		configs, _, err := machineconfig.Configs(c, bundle)
		if err != nil {
			t.Fatal(err)
		}
		config := configs["blue-cp-1"]
		_, excluded := config.Machine().NodeLabels()["node.kubernetes.io/exclude-from-external-load-balancers"]
		if takes := config.Cluster().ScheduleOnControlPlanes(); takes != alone || excluded == alone {
			t.Errorf("alone %t: takes pods %t, excluded from load balancers %t", alone, takes, excluded)
		}
		if virtual := config.NetworkVirtualIPConfigs(); len(virtual) != 1 || virtual[0].VIP() != c.Endpoint {
			t.Errorf("alone %t: virtual addresses %v", alone, virtual)
		}
	}
}

// Proxmox's disks are found by their places, whichever letters the kernel gives them, and what is kept on them is as secret as EPHEMERAL.
func TestFurtherDisksAreVolumes(t *testing.T) {
	c, bundle := described(t, "blue")
	c.Nodes[3].Disks = []clusterconfig.Disk{{Size: 40}, {Size: 10}, {Size: 200, Volume: "longhorn"}}
	c.Storage.DataPath = "/var/mnt/longhorn"
	for _, encryption := range []string{clusterconfig.EncryptionNodeID, clusterconfig.EncryptionNone} {
		c.Talos.DiskEncryption.Ephemeral = encryption
		configs, _, err := machineconfig.Configs(c, bundle)
		if err != nil {
			t.Fatal(err)
		}
		if disk := configs["blue-worker-2"].Machine().Install().Disk(); disk != "/dev/sda" || len(configs["blue-worker-2"].UserVolumeConfigs()) != 0 {
			t.Errorf("with one disk it installs to %s", disk)
		}
		data, err := configs["blue-worker-1"].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		config, err := configloader.NewFromBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		if disk := config.Machine().Install().Disk(); disk != "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0" {
			t.Errorf("it installs to %s", disk)
		}
		volumes := config.UserVolumeConfigs()
		if len(volumes) != 1 || volumes[0].Name() != "longhorn" || !volumes[0].Provisioning().Grow().ValueOrZero() {
			t.Fatalf("the volumes are %v", volumes)
		}
		if rule, _ := volumes[0].Provisioning().DiskSelector().Get(); rule.String() != `"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi2" in disk.symlinks` {
			t.Errorf("the disk is chosen by %s", rule)
		}
		if encrypted := volumes[0].Encryption() != nil; encrypted != (encryption == clusterconfig.EncryptionNodeID) {
			t.Errorf("with %s, the volume is encrypted: %t", encryption, encrypted)
		}
		if mount := config.Machine().Kubelet().ExtraMounts(); len(mount) != 2 || mount[0].Destination != "/var/lib/longhorn" || mount[1].Destination != "/var/mnt/longhorn" {
			t.Errorf("the kubelet has %v, and Longhorn's pods mount its own folder wherever its data is", mount)
		}
	}
}

func TestAnotherCNIComesWithTheControlPlanes(t *testing.T) {
	c, bundle := described(t, "blue")
	if err := json.Unmarshal([]byte(`[{"name": "cilium.yaml", "text": "kind: DaemonSet\n"}]`), &c.Kubernetes.CNIManifests); err != nil {
		t.Fatal(err)
	}
	c.Kubernetes.CNI = clusterconfig.CNINone
	configs, _, err := machineconfig.Configs(c, bundle)
	if err != nil {
		t.Fatal(err)
	}
	for node, manifests := range map[string]int{"blue-cp-1": 1, "blue-cp-3": 1, "blue-worker-1": 0} {
		cluster := configs[node].Cluster()
		if cluster.Network().CNI().Name() != "none" || len(cluster.InlineManifests()) != manifests {
			t.Errorf("%s: CNI %s, manifests %v", node, cluster.Network().CNI().Name(), cluster.InlineManifests())
		}
		if manifests == 1 && (cluster.InlineManifests()[0].Name() != "cilium.yaml" || cluster.InlineManifests()[0].Contents() != "kind: DaemonSet\n") {
			t.Errorf("%s: %v", node, cluster.InlineManifests())
		}
	}
}

func TestTheSameDescriptionGivesTheSameBytes(t *testing.T) {
	c, bundle := described(t, "sandbox")
	texts := func() map[string]string {
		configs, _, err := machineconfig.Configs(c, bundle)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for name, config := range configs {
			data, err := config.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(data)
		}
		return all
	}
	first, second := texts(), texts()
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestVersionsThatDoNotGoTogetherAreRefused(t *testing.T) {
	for _, wrong := range []struct{ talos, kubernetes, says string }{
		{"v1.11.5", "v1.34.0", "v1.12"},
		{"v1.14.0", "v1.36.2", "v1.13"},
		{"v1.13.9", "v1.29.0", "v1.29.0 with talos v1.13.9"},
		{"1.13", "latest", "write it as v1.36.2"},
		{"latest", "v1.36.2", "write it as v1.13.9"},
	} {
		c, bundle := described(t, "sandbox")
		c.Talos.Version, c.Kubernetes.Version = wrong.talos, wrong.kubernetes
		if _, _, err := machineconfig.Configs(c, bundle); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("talos %s with kubernetes %s: %v", wrong.talos, wrong.kubernetes, err)
		}
	}
}

func TestBrokenSecretsAreRefusedWithoutAValue(t *testing.T) {
	secrets, err := commonSecrets()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := machineconfig.ParseSecrets(secrets)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range [][]byte{
		nil,
		[]byte("just words"),
		bytes.Replace(secrets, []byte("bootstraptoken"), []byte("otherword"), 1),
		append([]byte("cluster: [\n"), secrets...),
	} {
		_, err := machineconfig.ParseSecrets(broken)
		if err == nil {
			t.Errorf("accepted: %.30s", broken)
			continue
		}
		for _, value := range []string{bundle.Cluster.Secret, bundle.TrustdInfo.Token, bundle.Secrets.BootstrapToken} {
			if strings.Contains(err.Error(), value) {
				t.Error("the error holds a secret")
			}
		}
	}
}

// What was there before castle is told by its disk and its network card, and is installed from an image for no cloud.
func TestMachinesThatAreThereAreInstalledToTheirOwnDisk(t *testing.T) {
	c, bundle := described(t, "blue")
	c.Platform = clusterconfig.PlatformTalos
	for i := range c.Nodes {
		c.Nodes[i].Disks, c.Nodes[i].InstallDisk = nil, "/dev/nvme0n1"
	}
	c.Nodes[1].InstallDisk, c.Nodes[1].MAC = "/dev/sdb", "52:54:00:AB:CD:EF"
	configs, _, err := machineconfig.Configs(c, bundle)
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]struct{ disk, rule string }{
		"blue-cp-1": {"/dev/nvme0n1", `link.kind == ""`},
		"blue-cp-2": {"/dev/sdb", `mac(link.hardware_addr) == "52:54:00:ab:cd:ef"`},
	} {
		data, err := configs[node].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		config, err := configloader.NewFromBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		if disk := config.Machine().Install().Disk(); disk != want.disk {
			t.Errorf("%s is installed to %s", node, disk)
		}
		if image := config.Machine().Install().Image(); !strings.HasPrefix(image, "factory.talos.dev/metal-installer/613e1592") || !strings.HasSuffix(image, ":v1.13.9") {
			t.Errorf("%s is installed from %s", node, image)
		}
		aliases := config.NetworkLinkAliasConfigs()
		if len(aliases) != 1 || aliases[0].LinkSelector().String() != want.rule {
			t.Errorf("%s has the network cards %v", node, aliases)
		}
	}
}
