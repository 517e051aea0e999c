package newcluster

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
)

// update writes the golden files.
var update = flag.Bool("update", false, "write the golden files")

const layers = "../../../terragrunt"

// home is all that a first cluster needs to be told.
func home() Options {
	return Options{
		Name: "home", Platform: config.PlatformProxmox, Subnet: "10.0.8.0/24", ControlPlanes: 3, Workers: 2,
		ProxmoxURL: "https://10.0.8.2:8006/", Hosts: []string{"pve1", "pve2"}, GitOpsURL: "https://git.example.org/me/gitops.git",
		Project: "7f0c4b0e-5a53-4f39-9a0e-0d6b0a1c2d3e", Slug: "home", Bucket: "states", Endpoint: "https://s3.example.org",
		Fingerprint: strings.Repeat("AB:", 31) + "AB",
	}
}

// cloud is all that a first cluster on AWS needs to be told.
func cloud() Options {
	return Options{
		Name: "cloud", Platform: config.PlatformAWS, Subnet: "10.60.0.0/16", ControlPlanes: 3, Workers: 2, AWSRegion: "eu-central-1",
		AdminCIDRs: []string{"203.0.113.7/32"}, GitOpsURL: "https://git.example.org/me/gitops.git", Infisical: config.NoInfisical, Bucket: "states", Region: "eu-central-1",
	}
}

// metal is all that a first cluster of machines that are there needs to be told.
func metal() Options {
	return Options{
		Name: "metal", Platform: config.PlatformTalos, Subnet: "10.0.9.0/24", ControlPlanes: 3, Workers: 2, InstallDisk: "/dev/nvme0n1",
		Machines:  []string{"10.0.9.31", "10.0.9.32", "10.0.9.33", "10.0.9.34", "10.0.9.211"},
		GitOpsURL: "https://git.example.org/me/gitops.git", Infisical: config.NoInfisical, Bucket: "states", Region: "eu-central-1",
	}
}

// made describes a cluster in a repository's folder of clusters, and reads it as every other call does.
func made(t *testing.T, clusters string, o Options) *config.Cluster {
	t.Helper()
	if err := Execute(clusters, layers, clusters, "clusters/"+o.Name, o); err != nil {
		t.Fatal(err)
	}
	described, err := config.Load(filepath.Join(clusters, o.Name))
	if err != nil {
		t.Fatal(err)
	}
	return described
}

func TestClustersOfARepositoryNeverTouch(t *testing.T) {
	clusters := t.TempDir()
	all := []*config.Cluster{made(t, clusters, home())}
	for i, size := range [][2]int{{1, 0}, {5, 7}, {3, 2}, {1, 1}} {
		all = append(all, made(t, clusters, Options{Name: fmt.Sprintf("c%d", i), Platform: config.PlatformProxmox, Subnet: "10.0.8.0/24", ControlPlanes: size[0], Workers: size[1]}))
	}
	addresses, ids := map[netip.Addr]string{}, map[int]string{}
	shared := map[netip.Addr]bool{netip.MustParseAddr("10.0.8.1"): true, netip.MustParseAddr("10.0.8.2"): true}
	for _, c := range all {
		for _, address := range c.Addresses() {
			if other, is := addresses[address]; is && other != c.Name && !shared[address] {
				t.Errorf("%s and %s have %s", other, c.Name, address)
			}
			addresses[address] = c.Name
		}
		for id := c.VMIDs.First; id <= c.VMIDs.Last; id++ {
			if other, is := ids[id]; is {
				t.Errorf("%s and %s have the VM id %d", other, c.Name, id)
			}
			ids[id] = c.Name
		}
		if c.Proxmox.URL != "https://10.0.8.2:8006/" || c.Proxmox.Fingerprint == "" || c.Secrets.Infisical.Slug != "home" || c.State.S3.Bucket != "states" {
			t.Errorf("%s: %+v", c.Name, c)
		}
		if c.GitOps.Path != "clusters/"+c.Name || c.Secrets.Infisical.Path != "/clusters/"+c.Name {
			t.Errorf("%s has its things at %s and %s", c.Name, c.GitOps.Path, c.Secrets.Infisical.Path)
		}
	}
	var hosts []string
	for _, node := range all[0].Nodes {
		hosts = append(hosts, node.Host)
	}
	if want := []string{"pve1", "pve2", "pve1", "pve2", "pve1"}; !slices.Equal(hosts, want) {
		t.Errorf("the nodes are on %v, want %v", hosts, want)
	}
}

func TestASubnetIsFilledBeforeItIsFull(t *testing.T) {
	clusters := t.TempDir()
	o := home()
	for i := 0; ; i++ {
		o.Name = fmt.Sprintf("c%d", i)
		err := Execute(clusters, layers, clusters, "clusters", o)
		if err == nil {
			continue
		}
		if i < 5 || !strings.Contains(err.Error(), "10.0.8.0/24 has no room for 5 nodes, a virtual IP and 20 addresses") {
			t.Errorf("after %d clusters: %v", i, err)
		}
		return
	}
}

func TestEverySubnetThatADescriptionTakesIsTaken(t *testing.T) {
	for bits := 16; bits <= smallestSubnet; bits++ {
		o := home()
		o.Subnet, o.ProxmoxURL = fmt.Sprintf("10.20.0.0/%d", bits), "https://192.0.2.1:8006/"
		o.ControlPlanes, o.Workers = 1, 1
		made(t, t.TempDir(), o)
	}
	o := home()
	o.Subnet = "10.244.8.0/24" // where pods are by default
	made(t, t.TempDir(), o)
}

// golden holds what a person reads. What is random is not in it.
func TestWhatAPersonReads(t *testing.T) {
	clusters := t.TempDir()
	made(t, clusters, home())
	o := Options{Name: "lab", Platform: config.PlatformProxmox, Subnet: "10.0.8.0/24", ControlPlanes: 1, Workers: 1, Infisical: config.NoInfisical, LocalStates: true}
	o.Fingerprint = home().Fingerprint
	made(t, clusters, o)
	made(t, clusters, cloud())
	made(t, clusters, metal())
	for _, name := range []string{"home", "lab", "cloud", "metal"} {
		for _, file := range []string{"cluster.yaml", "secrets.example.yaml", "README.md"} {
			got, err := os.ReadFile(filepath.Join(clusters, name, file))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+"-"+file)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s of %s is now\n%s\n%v", file, name, got, err)
			}
		}
	}
}

func TestAllThatIsWrongIsSaidAtOnceAndNothingIsWritten(t *testing.T) {
	clusters := t.TempDir()
	made(t, clusters, home())
	for _, test := range []struct {
		change func(*Options)
		want   []string
	}{
		{func(o *Options) { *o = Options{Platform: "vsphere", ControlPlanes: 2, Workers: -1} },
			[]string{"no name: give one with --name", `--platform "vsphere"`, "--subnet", "--control-planes 2", "--workers -1"}},
		{func(o *Options) { o.Name = "home" }, []string{"there is a cluster home already"}},
		{func(o *Options) { o.Subnet = "10.0.8.7/24" }, []string{"did you mean 10.0.8.0/24?"}},
		{func(o *Options) { o.Subnet = "2001:db8::/64" }, []string{"--subnet", "IPv6"}},
		{func(o *Options) { o.Gateway, o.DNS = "10.0.8", []string{"dns.example.org"} }, []string{"--gateway", "--dns"}},
		{func(o *Options) { o.Gateway = "10.0.9.1" }, []string{"new/cluster.yaml:", "10.0.9.1 is outside 10.0.8.0/24"}},
		{func(o *Options) { o.Name = "New_1" }, []string{"New_1/cluster.yaml:", "name"}},
		{func(o *Options) { o.Platform = config.PlatformAWS }, []string{"--aws-region", "--admin-cidr", "are not for --platform aws: leave them out"}},
		{func(o *Options) { o.AMI = "ami-01234567" }, []string{"are for --platform aws: leave them out"}},
		{func(o *Options) { *o = cloud(); o.AdminCIDRs = []string{"0.0.0.0/0", "203.0.113.7"} }, []string{"did you mean 203.0.113.0/24?"}},
		{func(o *Options) { *o = cloud(); o.AdminCIDRs = []string{"0.0.0.0/0"} }, []string{"cloud/cluster.yaml:", "lets in the world"}},
		{func(o *Options) { *o = cloud(); o.Subnet = "10.0.0.0/12" }, []string{"larger than a VPC can be"}},
		{func(o *Options) { *o = cloud(); o.Zones = []string{"eu-west-1a"} }, []string{"is no availability zone of eu-central-1"}},
		{func(o *Options) { o.Platform = config.PlatformTalos }, []string{"--machine", "--install-disk", "are not for --platform talos: leave them out"}},
		{func(o *Options) { *o = metal(); o.Machines, o.AMI = o.Machines[:2], "ami-01234567" }, []string{"--machine names 2 for 3 control planes", "and what is AWS's"}},
		{func(o *Options) { *o = metal(); o.Machines[1] = "10.0.9" }, []string{"--machine"}},
		{func(o *Options) { *o = metal(); o.Machines[1] = "10.0.9.31" }, []string{"metal/cluster.yaml:", "10.0.9.31 belongs to nodes[0] metal-cp-1 already"}},
		{func(o *Options) { *o = metal(); o.Subnet, o.Machines[1] = "10.0.8.0/24", "10.0.8.2" }, []string{"--machine 10.0.8.2: the cluster home of this repository has that address"}},
		{func(o *Options) { o.InstallDisk = "/dev/sda" }, []string{"--machine and --install-disk are for --platform talos"}},
		{func(o *Options) { o.LocalStates, o.Bucket = true, "b" }, []string{"--local-states"}},
		{func(o *Options) { o.Infisical, o.Project, o.Slug = "https://eu.infisical.com", "", "" }, []string{"--infisical-project"}},
	} {
		o := home()
		o.Name = "new"
		test.change(&o)
		err := Execute(clusters, layers, clusters, "clusters/new", o)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q: %v", want, err)
			}
		}
		if entries, _ := os.ReadDir(clusters); len(entries) != 1 {
			t.Fatalf("there are now %v", entries)
		}
	}
	// The first one of a repository has nobody to take anything from.
	err := Execute(t.TempDir(), layers, clusters, "clusters/new", Options{Name: "new", Platform: config.PlatformProxmox, Subnet: "10.0.8.0/24", ControlPlanes: 3})
	for _, want := range []string{"--proxmox-url", "--host", "--gitops-url", "--infisical-project", "--state-bucket"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// A VPC is filled from its beginning, whatever its size, and a cluster that has an image with extensions has storage.
func TestAClusterOnAWSHasItsNodesSpreadOverTheZones(t *testing.T) {
	for length := 16; length <= 26; length++ {
		o := cloud()
		o.Subnet, o.AMI, o.Workers = fmt.Sprintf("10.60.0.0/%d", length), "ami-0123456789abcdef0", 4
		c := made(t, t.TempDir(), o)
		if !c.Storage.Has() || c.AWS.AMI != o.AMI || c.LoadBalancer.Has() {
			t.Errorf("/%d: %+v", length, c)
		}
		in := map[string]int{}
		for _, node := range c.Nodes {
			for zone, subnet := range c.AWS.Zones {
				if subnet.Contains(node.Address) {
					in[zone]++
				}
			}
		}
		if len(in) != 3 || in["eu-central-1a"] != 3 || in["eu-central-1c"] != 2 {
			t.Errorf("/%d: nodes stand in %v", length, in)
		}
	}
}
