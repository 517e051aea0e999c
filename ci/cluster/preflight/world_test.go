package preflight

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/test/sopstest"
)

const (
	proxmoxToken = "castle@pve!test=5f8a9c0e-0000-4000-8000-0123456789ab"
	readToken    = "canary-of-a-token-that-reads"
	pushToken    = "canary-of-a-token-that-pushes"
)

// world is all that blue is made with and on, simulated, and each piece can be spoilt before it starts.
type world struct {
	t       *testing.T
	cluster *run.Cluster

	text      []string // what is replaced in cluster.yaml: from, to, …
	proxmox   proxmox.Options
	guests    []proxmox.Guest
	sops      map[string]string
	remote    map[string]string
	infisical profile.Faults
	// workloadsMayRead is the folder of the identity that goes into the cluster for the workloads.
	workloadsMayRead string
	files            fstest.MapFS // of the GitOps repository
	branch           string
	pushToken        string
	asked            Asked
	free             uint64
	drifted          string // the node whose machine has another address
	strangers        map[netip.Addr]answer
	state            string
	terragrunt       string // what the program prints
	lock             string // in the store, empty where there is none
	limit            time.Duration
	shown            []string // rows that blocking has shown
}

// newWorld is one in which nothing is wrong, but for what spoil does.
func newWorld(t *testing.T, spoil func(*world)) *world {
	t.Helper()
	w := &world{
		workloadsMayRead: "/clusters/blue/workloads",
		t:                t, limit: time.Minute, free: 1 << 40, branch: "main", state: t.TempDir(), pushToken: pushToken, terragrunt: "terragrunt version v1.1.0",
		proxmox: proxmox.Options{
			Tokens: []string{proxmoxToken}, Nodes: []proxmox.Node{{Name: "proxmox"}}, Privileges: map[string][]string{"/": hypervisor.Privileges()},
			Storages: []proxmox.Storage{{ID: "local-lvm", Type: "lvmthin", Content: "images,rootdir", Bytes: 1 << 40}},
		},
		guests: []proxmox.Guest{{Template: true, VM: proxmox.VM{ID: 900, Name: "talos"}}},
		sops: map[string]string{
			secrets.StatePassphrase: "a passphrase that is long", secrets.InfisicalClientID: "client", secrets.InfisicalClientSecret: "canary-of-a-client",
			secrets.InfisicalFluxClientID: "id-of-a-reader-f", secrets.InfisicalFluxClientSecret: "canary-of-flux",
			secrets.InfisicalWorkloadsClientID: "id-of-a-reader-w", secrets.InfisicalWorkloadsClientSecret: "canary-of-workloads",
			secrets.ProxmoxAPIToken: proxmoxToken, secrets.AWSAccessKeyID: "AKIACHECKS0000000001", secrets.AWSSecretAccessKey: "canary-of-a-store",
		},
		remote: map[string]string{
			secrets.GitOpsUsername: "flux", secrets.GitOpsToken: readToken,
			secrets.FluxAgeKey: sopstest.NewKey(t).String(),
		},
		files: fstest.MapFS{"clusters/blue/kustomization.yaml": {Data: []byte("resources: []\n")}},
	}
	if spoil != nil {
		spoil(w)
	}
	w.start()
	return w
}

func (w *world) start() {
	w.t.Helper()
	key := sopstest.NewKey(w.t)
	folder := filepath.Join(w.t.TempDir(), "blue")
	data, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	text := string(data)
	host, fingerprint := w.serveProxmox()
	for _, pair := range slices.Collect(slices.Chunk(append(w.text,
		"https://192.168.1.10:8006/", host, "16:47:76:88:C0:E0:06:99:C6:CF:A4:49:7A:36:12:D7:E8:3C:53:20:62:B6:4B:25:0F:ED:89:08:12:8E:D5:48", fingerprint,
		"https://github.com/tazzo/tazlab-k8s.git", w.serveGit(), "https://s3.example.com", w.serveS3()), 2)) {
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	w.write(filepath.Join(folder, config.File), text, 0o600)
	sopstest.Write(w.t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), w.sops)
	w.cluster = &run.Cluster{Folder: folder, State: w.state, AgeKey: key.String(), Out: w.t.Output(), Tools: run.Tools{
		Tofu:       w.program("tofu", `echo '{"terraform_version": "1.12.6"}'`),
		Terragrunt: w.program("terragrunt", "echo "+w.terragrunt),
	}}
	if err := w.cluster.Load(); err != nil {
		w.t.Fatal(err)
	}
	// A description may name an Infisical over TLS only, whose certificate nobody would know here.
	if at := &w.cluster.Description.Secrets.Infisical; at.URL == "https://eu.infisical.com" {
		at.URL = w.serveInfisical()
	}
}

// probe finds the strangers and the cluster's machines that run, and nobody else.
func (w *world) probe(_ context.Context, address netip.Addr, port int) (accepted, there bool) {
	for _, node := range w.cluster.Description.Nodes {
		runs := slices.ContainsFunc(w.guests, func(guest proxmox.Guest) bool { return guest.ID == node.VMID && guest.Running })
		if node.Address == address && port == talosPort && runs && node.Name != w.drifted {
			return true, true
		}
	}
	stranger, is := w.strangers[address]
	return is && stranger.accepted && stranger.port == port, is && stranger.port == port
}

func (w *world) write(file, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) program(name, script string) string {
	file := filepath.Join(w.t.TempDir(), name)
	w.write(file, "#!/bin/sh\n"+script+"\n", 0o700)
	return file
}

func (w *world) serveProxmox() (address, fingerprint string) {
	w.t.Helper()
	w.proxmox.File = filepath.Join(w.t.TempDir(), "proxmox.json")
	simulator, err := proxmox.New(w.proxmox)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(simulator.Close)
	for _, guest := range w.guests {
		guest.Cores, guest.MemoryMiB = 1, 512
		if guest.Disks == nil {
			guest.Disks = []proxmox.Disk{{Interface: "scsi0", Bytes: gib}}
		}
		if err := simulator.Seed(guest); err != nil {
			w.t.Fatal(err)
		}
	}
	server := httptest.NewUnstartedServer(simulator)
	server.Config = simulator.HTTP()
	server.StartTLS()
	w.t.Cleanup(server.Close)
	return server.URL, strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(server.Certificate().Raw)), " ", ":")
}

func (w *world) serveInfisical() string {
	w.t.Helper()
	server, err := infisical.Open("", infisical.Seed{Projects: []infisical.Project{{
		ID: "7f0c4b0e-5a53-4f39-9a0e-0d6b0a1c2d3e", Slug: "tazlab", Clients: []infisical.Client{{ID: "client", Secret: "canary-of-a-client"},
			{ID: "id-of-a-reader-f", Secret: "canary-of-flux", Permissions: []infisical.Permission{infisical.Reading("prod", "/clusters/blue/flux")}},
			{ID: "id-of-a-reader-w", Secret: "canary-of-workloads", Permissions: []infisical.Permission{infisical.Reading("prod", w.workloadsMayRead)}}},
		Environments: map[string]map[string]map[string]string{"prod": {
			"/clusters/blue": {}, "/clusters/blue/flux": w.remote, "/clusters/blue/workloads": {secrets.Proof: "proof"},
		}},
	}}}, profile.Profile{Faults: w.infisical})
	if err != nil {
		w.t.Fatal(err)
	}
	served := httptest.NewServer(server)
	w.t.Cleanup(served.Close)
	return served.URL
}

// serveGit also puts the server's certificate where Flux takes it from.
func (w *world) serveGit() string {
	w.t.Helper()
	root := w.t.TempDir()
	if err := gitserver.InitBare(w.t.Context(), filepath.Join(root, "k8s.git"), w.branch); err != nil {
		w.t.Fatal(err)
	}
	if _, err := gitserver.Seed(w.t.Context(), filepath.Join(root, "k8s.git"), w.branch, gitserver.Commit{Files: w.files}); err != nil {
		w.t.Fatal(err)
	}
	handler, err := gitserver.New(gitserver.Options{Root: root, Token: pushToken, ReadToken: readToken})
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewTLSServer(handler)
	w.t.Cleanup(server.Close)
	w.remote[secrets.GitOpsCA] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return server.URL + "/k8s.git"
}

func (w *world) serveS3() string {
	w.t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("tazlab-states"); err != nil {
		w.t.Fatal(err)
	}
	if w.lock != "" {
		if _, err := backend.PutObject("tazlab-states", "blue/castle.lock", map[string]string{}, strings.NewReader(w.lock), int64(len(w.lock)), nil); err != nil {
			w.t.Fatal(err)
		}
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	w.t.Cleanup(server.Close)
	return server.URL
}

// rows are what all checks say, by check.
func (w *world) rows() map[string][]Row {
	w.t.Helper()
	ctx := w.t.Context()
	s := newInspection(ctx, w.cluster, w.limit)
	defer s.close()
	s.asked, s.probe = w.asked, w.probe
	s.asked.PushToken = w.pushToken
	s.free = func(string) (uint64, error) { return w.free, nil }
	s.openSources(ctx)
	rows := map[string][]Row{}
	for _, row := range s.run(ctx, table) {
		mends := row.Verdict == Failed || row.Verdict == Warning
		if mends != (row.Fix != "") {
			w.t.Errorf("%+v has the wrong fix", row)
		}
		if strings.Contains(row.Seen+row.Fix, "canary") || strings.Contains(row.Seen+row.Fix, "5f8a9c0e") {
			w.t.Errorf("a secret is in %+v", row)
		}
		name := row.Group + " " + row.Name
		rows[name] = append(rows[name], row)
	}
	return rows
}

// blocking is Blocking in this world, as the given functions change what is seen of it.
func (w *world) blocking(values func() *secrets.Values, change ...func(*inspection)) error {
	w.t.Helper()
	s := newInspection(w.t.Context(), w.cluster, w.limit)
	defer s.close()
	s.values, s.probe = values, w.probe
	for _, one := range change {
		one(s)
	}
	return s.blocking(w.t.Context(), func(row Row) error {
		w.shown = append(w.shown, row.Group+" "+row.Name)
		return nil
	})
}
