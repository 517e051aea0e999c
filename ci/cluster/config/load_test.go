package config

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/strictyaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

const live = "../../../terragrunt/live"

func TestTheLiveDescriptionsAreValid(t *testing.T) {
	for _, name := range []string{"blue", "sandbox"} {
		c, err := Load(filepath.Join(live, name))
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if len(c.ControlPlanes()) != 3 || len(c.Workers()) != 2 || c.Tag() != "castle-"+name {
			t.Errorf("%s: %d control planes, %d workers, tag %s", name, len(c.ControlPlanes()), len(c.Workers()), c.Tag())
		}
		if want := Schematic(c.Talos.Extensions); c.Talos.Schematic != want {
			t.Errorf("%s: the schematic is %s, its extensions make %s", name, c.Talos.Schematic, want)
		}
	}
}

func TestAClusterMayHaveOneThreeOrFiveControlPlanesAndNoWorkers(t *testing.T) {
	head, rest, _ := strings.Cut(blueText(t), "nodes:\n")
	_, rest, _ = strings.Cut(rest, "talos:\n")
	rest = strings.Replace(rest, "replicas: 2", "replicas: 1", 1)
	for _, size := range []struct{ controlPlanes, workers, takePods int }{{1, 0, 1}, {1, 1, 1}, {3, 0, 3}, {5, 0, 5}, {5, 2, 2}} {
		nodes := ""
		for i := range size.controlPlanes + size.workers {
			role := RoleControlPlane
			if i >= size.controlPlanes {
				role = RoleWorker
			}
			nodes += fmt.Sprintf("  - {name: n-%d, role: %s, address: 192.168.1.%d, vmID: %d, host: proxmox, cores: 4, memory: 8192, disks: [{size: 40}]}\n", i, role, 211+i, 421+i)
		}
		c, err := parse("cluster.yaml", "", []byte(head+"nodes:\n"+nodes+"talos:\n"+rest))
		if err != nil {
			t.Errorf("%+v: %v", size, err)
			continue
		}
		if got := c.PodNodes(); len(got) != size.takePods || c.TakesPods(c.Nodes[0]) != (size.workers == 0) {
			t.Errorf("%+v: %d nodes take pods", size, len(got))
		}
	}
}

func TestFurtherDisksMayHoldLonghornsDataWherePodsRun(t *testing.T) {
	text := strings.Replace(blueText(t), "dataPath: /var/lib/longhorn", "dataPath: /var/mnt/longhorn", 1)
	text = strings.ReplaceAll(text, "memory: 16384, disks: [{size: 100}]", "memory: 16384, disks: [{size: 40}, {size: 300, volume: longhorn}]")
	text = strings.Replace(text, "bridge: vmbr0", "bridge: vmbr0\n  vlan: 42", 1)
	c, err := parse("cluster.yaml", "blue", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	handed, err := c.HandOver()
	if err != nil || !strings.Contains(handed, `{"size":300,"volume":"longhorn"}`) || !strings.Contains(handed, `"vlan":42`) {
		t.Errorf("handed over as %s, %v", handed, err)
	}
}

func TestEachNodeIsClonedFromATemplateOfItsHostOrTheOneForAll(t *testing.T) {
	text := strings.Replace(blueText(t), "vmID: 424, host: proxmox", "vmID: 424, host: pve2", 1)
	text = strings.Replace(text, "vmID: 425, host: proxmox", "vmID: 425, host: pve3", 1)
	for written, want := range map[string]struct {
		of  [3]Clone // blue-cp-1, blue-worker-1, blue-worker-2
		ids []int
	}{
		"templates: {proxmox: 900, pve2: 901, pve3: 902}":               {[3]Clone{{900, "proxmox"}, {901, "pve2"}, {902, "pve3"}}, []int{900, 901, 902}},
		"template: 900\n  templates: {pve2: 901, pve3: 902, pve9: 909}": {[3]Clone{{900, "proxmox"}, {901, "pve2"}, {902, "pve3"}}, []int{900, 901, 902}},
		"template: 900\n  templateHost: proxmox":                        {[3]Clone{{900, "proxmox"}, {900, "proxmox"}, {900, "proxmox"}}, []int{900}},
		"template: 900\n  templateHost: pve2\n  templates: {pve3: 902}": {[3]Clone{{900, "pve2"}, {900, "pve2"}, {902, "pve3"}}, []int{900, 902}},
	} {
		c, err := parse("cluster.yaml", "", []byte(strings.Replace(text, "template: 900", written, 1)))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		for i, node := range []int{0, 3, 4} {
			if got := c.Proxmox.CloneOf(c.Nodes[node]); got != want.of[i] || got.Across(c.Nodes[node]) != (got.Host != c.Nodes[node].Host) {
				t.Errorf("%s: %s is cloned from %+v", written, c.Nodes[node].Name, got)
			}
		}
		if ids := c.TemplateIDs(); !slices.Equal(ids, want.ids) {
			t.Errorf("%s: the templates are %v", written, ids)
		}
	}
}

func TestABlueNodeIsFoundByItsName(t *testing.T) {
	c, err := Load(filepath.Join(live, "blue"))
	if err != nil {
		t.Fatal(err)
	}
	node, ok := c.Node("blue-worker-2")
	if !ok || node.Address != netip.MustParseAddr("192.168.1.215") || node.VMID != 425 || node.Disks[0].Size != 100 {
		t.Errorf("got %+v, %t", node, ok)
	}
	if _, ok := c.Node("blue-worker-9"); ok {
		t.Error("a node that is not there was found")
	}
	if c.Server() != "https://192.168.1.210:6443" || !c.VMIDs.Contains(432) || c.VMIDs.Contains(433) {
		t.Errorf("server %s, range %v", c.Server(), c.VMIDs)
	}
}

// Each file of testdata/invalid is blue's description with the mistake that it is named by, and the golden file beside it
// holds what a person is told. A file tells of one mistake, unless its golden file says otherwise on purpose.
func TestEveryMistakeIsNamedWithItsLineAndItsFix(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 25 {
		t.Fatalf("found %d invalid descriptions (%v), want 25 or more", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parse("cluster.yaml", "blue", data)
			if err == nil {
				t.Fatal("the description was taken for a valid one")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%swant (%s)\n%s", got, file, want)
	}
}

// A VM has each of these words as a tag, whichever cluster it is of.
func TestANameThatIsATagOfOtherClustersVMsIsReserved(t *testing.T) {
	blue := blueText(t)
	for name, refused := range map[string]bool{
		"castle": true, "worker": true, "controlplane": true, "castle-blue": true,
		"castles": false, "workers": false, "my-castle": false, "blue-2": false,
	} {
		text := strings.Replace(strings.Replace(blue, "name: blue\n", "name: "+name+"\n", 1), "branch: main", "branch: ..", 1)
		_, err := parse("cluster.yaml", "", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "branch") {
			t.Errorf("%s: the other mistake is not named: %v", name, err)
		}
		if got := strings.Contains(err.Error(), "name: "+name+" is reserved") && strings.Contains(err.Error(), "then create it under another name"); got != refused {
			t.Errorf("%s is refused: %t\n%v", name, got, err)
		}
	}
	machines, err := os.ReadFile(filepath.Join("testdata", "machines.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse("cluster.yaml", "", []byte(strings.Replace(string(machines), "name: metal\n", "name: worker\n", 1))); err != nil {
		t.Errorf("a cluster without VMs: %v", err)
	}
}

func TestTheTagsOfAVMSayWhoseItIs(t *testing.T) {
	for tags, want := range map[string]string{
		"castle castle-blue controlplane":         "blue",
		"castle-blue":                             "blue",
		"castle castle-blue-2 worker":             "blue-2",
		"castle castle-green blue worker":         "", // another cluster's, with somebody's own tag
		"castle blue worker":                      "blue",
		"blue castle controlplane somebody":       "blue",
		"blue-2 castle controlplane":              "blue-2",
		"blue":                                    "",
		"blue worker":                             "",
		"blue castle":                             "",
		"castle worker":                           "",
		"castle controlplane worker":              "",
		"castle castle-controlplane controlplane": "controlplane", // which no description is called
		"": "",
	} {
		for _, name := range []string{"blue", "blue-2", "castle", "worker", "controlplane", "castle-blue"} {
			if got := (&Cluster{Name: name}).Owns(strings.Fields(tags)); got != (name == want) {
				t.Errorf("%q are tags of %s: %t", tags, name, got)
			}
		}
	}
}

func TestTenMistakesAreTenLines(t *testing.T) {
	data, err := os.ReadFile("testdata/invalid/ten-mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = parse("cluster.yaml", "", data)
	var mistakes strictyaml.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) != 10 || strings.Count(err.Error(), "\n") != 9 {
		t.Fatalf("want ten mistakes on ten lines, got\n%v", err)
	}
	if !slices.IsSortedFunc(mistakes, func(a, b strictyaml.Mistake) int { return a.Line - b.Line }) {
		t.Errorf("the mistakes do not stand in the file's order:\n%v", err)
	}
}

func TestAPasswordInAURLIsNotShown(t *testing.T) {
	blue := blueText(t)
	for _, url := range []string{"https://tazlab:canary-7f3@github.com/tazzo/tazlab-k8s.git", "https://tazlab:canary-7f3%zz@github.com/x"} {
		_, err := parse("cluster.yaml", "", []byte(strings.Replace(blue, "https://github.com/tazzo/tazlab-k8s.git", url, 1)))
		if err == nil || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s gives %v", url, err)
		}
	}
}

func TestWhatIsLeftOutIsFilled(t *testing.T) {
	text := blueText(t)
	for _, line := range []string{
		"  diskEncryption: {ephemeral: nodeID}\n", "  kernelModules: [iscsi_tcp, dm_crypt]\n", "  podSubnet: 10.244.0.0/16\n",
		"  serviceSubnet: 10.96.0.0/16\n", "  dataPath: /var/lib/longhorn\n", "  storageClass: longhorn\n", "  branch: main\n",
		"state:\n  backend: s3\n  s3:\n    bucket: tazlab-states\n    endpoint: https://s3.example.com\n",
	} {
		if !strings.Contains(text, line) {
			t.Fatalf("blue has no line %q", line)
		}
		text = strings.Replace(text, line, "", 1)
	}
	c, err := parse("cluster.yaml", "", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		c.Talos.DiskEncryption.Ephemeral, c.Kubernetes.PodSubnet.String(), c.Kubernetes.ServiceSubnet.String(),
		c.Storage.DataPath, c.Storage.StorageClass, c.GitOps.Branch, c.State.Backend,
	}
	want := []string{"nodeID", "10.244.0.0/16", "10.96.0.0/16", "/var/lib/longhorn", "longhorn", "main", "local"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFolderWithoutDescriptionIsNamed(t *testing.T) {
	folder := t.TempDir()
	if _, err := Load(folder); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), folder) {
		t.Errorf("got %v", err)
	}
}

func TestTheFoldersNameIsCompared(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "green")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, File), []byte(blueText(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Load(folder)
	if err == nil || !strings.Contains(err.Error(), "green/cluster.yaml:2: name: blue is not the name of the folder, green") {
		t.Errorf("got %v", err)
	}
}

func TestEveryLineOfTheCataloguesCanBeRead(t *testing.T) {
	for name, table := range map[string]string{"modules.txt": modulesTable, "extensions.txt": extensionsTable} {
		lines := 0
		for line := range strings.Lines(table) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines++
			}
		}
		list := readCatalogue(table)
		if len(list) != lines {
			t.Errorf("%s has %d lines, %d could be read", name, lines, len(list))
		}
		for entry, in := range list {
			if len(in) == 0 || slices.Contains(in, -1) {
				t.Errorf("%s: %s has the minors %v", name, entry, in)
			}
		}
	}
	if got := minors(); !slices.Equal(got, []int{12, 13}) {
		t.Errorf("a cluster can have the minors %v", got)
	}
	if !modules().has("iscsi_tcp", 13) || !modules().has("nvme", 10) || modules().has("zram", 12) || !modules().has("zram", 13) {
		t.Error("the catalogue of modules is not the one that was written down")
	}
	for module, from := range moduleExtensions {
		if modules().has(module, 13) {
			t.Errorf("%s is shipped by Talos v1.13 and needs no extension", module)
		}
		for _, name := range from {
			if len(extensions()[name]) == 0 {
				t.Errorf("%s is said to come from %s, which is no extension", module, name)
			}
		}
	}
}

func blueText(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(live, "blue", File))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Rules look at fields that other mistakes may have left without a value.
func TestADescriptionThatIsCutAnywhereIsRefusedAndNotMore(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(blueText(t), "\n"), "\n")
	valid := 0
	for i := range lines {
		for _, text := range []string{
			strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"), // without a line
			strings.Join(lines[:i], "\n"),                                  // cut before it
		} {
			_, err := parse("cluster.yaml", "", []byte(text))
			var mistakes strictyaml.Mistakes
			switch {
			case err == nil:
				valid++
			case !errors.As(err, &mistakes) || len(mistakes) == 0:
				t.Errorf("without line %d: %v", i+1, err)
			}
		}
	}
	// The comment, the fields with a default, and what only cuts those off.
	if valid > 15 {
		t.Errorf("%d of the cut descriptions were taken for valid ones", valid)
	}
}

// OpenTofu asks for a region also where the store has none.
func TestAStoreOfAnotherMakerThanAWSGetsARegion(t *testing.T) {
	c, err := parse("cluster.yaml", "", []byte(blueText(t)))
	if err != nil {
		t.Fatal(err)
	}
	if c.State.S3.Region != "us-east-1" {
		t.Errorf("got %+v", c.State.S3)
	}
}

// Whoever forgets to encrypt it hands it to the engine, and to each step after that.
func TestAFileOfSecretsInTheClearEndsEverythingBeforeItBegins(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(live, "blue", File))
	if err != nil {
		t.Fatal(err)
	}
	for content, refused := range map[string]bool{
		"PROXMOX_API_TOKEN: canary\n":                 true,
		`{"PROXMOX_API_TOKEN": "canary"}`:             true,
		"PROXMOX_API_TOKEN: ENC[x]\nsops: {mac: x}\n": false,
		"": false, // told of when its secrets are wanted
	} {
		folder := filepath.Join(t.TempDir(), "blue")
		err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, File), text, 0o600),
			os.WriteFile(filepath.Join(folder, "secrets.sops.yaml"), []byte(content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(folder)
		switch {
		case !refused && err != nil:
			t.Errorf("%q: %v", content, err)
		case refused && (err == nil || !strings.Contains(err.Error(), "secrets.sops: secrets.sops.yaml is not encrypted") || strings.Contains(err.Error(), "canary")):
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestSecretsComeFromFilesAlone(t *testing.T) {
	_, section, _ := strings.Cut(blueText(t), "\n  infisical:\n")
	section, _, _ = strings.Cut(section, "\nstate:")
	text := strings.Replace(blueText(t), "\n  infisical:\n"+section, "\n  infisical: none", 1)
	text = strings.Replace(text, "sops: secrets.sops.yaml", "sops: [secrets.sops.yaml, talos.secrets.sops.yaml]\n  plan: plan.secrets.sops.yaml", 1)
	c, err := parse("cluster.yaml", "blue", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"secrets.sops.yaml", "talos.secrets.sops.yaml"}; c.Secrets.Infisical.Has() || !slices.Equal(c.Secrets.SOPS, want) || !slices.Equal(c.Secrets.Plan, []string{"plan.secrets.sops.yaml"}) {
		t.Errorf("read as %+v", c.Secrets)
	}
	handed, err := c.HandOver()
	if err != nil || !strings.Contains(handed, `"infisical":"none"`) {
		t.Fatalf("handed over as %s, %v", handed, err)
	}
	again, err := Handed(handed)
	if err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%v: handed over as\n%+v\nnot\n%+v", err, again, c)
	}
	if rendered, err := parse("rendered", "blue", []byte(c.Text())); err != nil || !reflect.DeepEqual(rendered, c) {
		t.Errorf("%v\n%s", err, c.Text())
	}
	if err := compileSchema(t).Validate(instance(t, []byte(text))); err != nil {
		t.Error(err)
	}
}
