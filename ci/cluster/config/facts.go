package config

import (
	"net/netip"
	"regexp"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Proxmox gives ids from 100 to 999999999 (its own manual, qm).
const firstID, lastID = 100, 999999999

// lastVLAN is the last tag of IEEE 802.1Q that is given, and of Proxmox's own schema.
const lastVLAN = 4094

// mostDisks is how many Proxmox gives a VM on virtio-scsi, scsi0 to scsi30.
const mostDisks = 31

// minima are what Talos itself asks for, docs.siderolabs.com, "System requirements" (the same from v1.10 to v1.13).
var minima = map[string]struct{ cores, memory, disk int }{ // memory in MiB, disk in GiB
	RoleControlPlane: {2, 2048, 10},
	RoleWorker:       {1, 1024, 10},
}

// required are the extensions without which Longhorn cannot attach a volume (longhorn.io/docs, "Talos Linux Support").
var required = []string{"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"}

// Forms that more than one field has.
var (
	hostForm    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`) // of a Proxmox node, whose name may have capitals
	label       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)          // a DNS label, RFC 1123
	versionForm = regexp.MustCompile(`^v(\d+\.\d+)\.\d+$`)
	volumeName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,32}[a-z0-9])?$`) // siderolabs/talos, UserVolumeConfig: 34 characters
	urlForm     = regexp.MustCompile(`^https?://[^@]+$`)
)

// workloadNamespaces are those in which the parts of gitops-repo ask for secrets.
var workloadNamespaces = []string{"actions-runners", "blog", "etcd-backup", "flux-system", "monitoring"}

// facts by the field's path. Those of one platform may all miss here; see platform.go.
var facts = strictyaml.Facts{
	"name":     {Form: label},
	"platform": {Words: []string{PlatformProxmox, PlatformTalos, PlatformAWS, PlatformSandbox}, Hint: "write proxmox, talos for machines that run Talos already, or sandbox for the proving ground"},
	"endpoint": {Hint: "write the virtual IP of the Kubernetes API, a free address of the subnet"},

	"network.subnet": {Hint: "write it as 192.168.1.0/24"},
	"network.dns":    {Nonempty: true, Distinct: true, Hint: "write at least one address, such as the gateway's"},

	"proxmox.url":          {Form: regexp.MustCompile(`^https://[^/@?#]+/?$`), Hint: "write it as https://192.168.1.10:8006/"},
	"proxmox.ca":           {Form: regexp.MustCompile(`^[^/]`), Optional: true},
	"proxmox.fingerprint":  {Form: regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$`), Optional: true},
	"proxmox.insecure":     {Default: false},
	"proxmox.template":     {Least: firstID, Most: lastID, Optional: true},
	"proxmox.templateHost": {Form: hostForm, Optional: true},
	"proxmox.templates":    {Optional: true},
	"proxmox.templates[]":  {Least: firstID, Most: lastID},
	"proxmox.linkedClones": {Default: false},
	// PVE::JSONSchema, pve-storage-id
	"proxmox.storage": {Form: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`)},
	// Linux: 15 characters
	"proxmox.bridge": {Form: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,14}$`)},

	"proxmox.vlan": {Least: 1, Most: lastVLAN, Optional: true},

	"aws.region":       {Form: regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`), Hint: "write it as eu-central-1"},
	"aws.zones":        {Hint: "write a subnet of the VPC for each availability zone, such as {eu-central-1a: 10.60.0.0/20}"},
	"aws.adminCIDRs":   {Nonempty: true, Distinct: true, Hint: "write where you come from, such as [203.0.113.7/32]"},
	"aws.ami":          {Form: regexp.MustCompile(`^ami-([0-9a-f]{8}|[0-9a-f]{17})$`), Optional: true},
	"aws.architecture": {Words: []string{"amd64", "arm64"}, Default: "amd64"},

	"vmIDs.first": {Least: firstID, Most: lastID},
	"vmIDs.last":  {Least: firstID, Most: lastID},

	"deletionProtection": {Default: false},

	"nodes":                  {Nonempty: true},
	"nodes[].name":           {Form: label},
	"nodes[].role":           {Words: []string{RoleControlPlane, RoleWorker}, Hint: "write controlplane or worker"},
	"nodes[].vmID":           {Least: firstID, Most: lastID, Hint: "write a free id of the range vmIDs"},
	"nodes[].host":           {Form: hostForm, Hint: "write the name of the Proxmox node"},
	"nodes[].installDisk":    {Form: regexp.MustCompile(`^/dev/[^\s]*[^\s/]$`), Hint: "write the disk that Talos is installed to, such as /dev/nvme0n1; talosctl get disks --insecure --nodes ADDRESS lists them"},
	"nodes[].mac":            {Form: regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`), Optional: true},
	"nodes[].fingerprint":    {Form: regexp.MustCompile(`^[A-Za-z0-9+/]{43}=$`), Optional: true},
	"nodes[].cores":          {Least: minima[RoleWorker].cores},
	"nodes[].memory":         {Least: minima[RoleWorker].memory, Hint: "write it in MiB, such as 8192"},
	"nodes[].instanceType":   {Form: regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9-]+$`), Hint: "write it as m7i.large"},
	"nodes[].disks":          {Nonempty: true, Hint: "write at least one with its size in GiB: [{size: 40}]"},
	"nodes[].disks[].volume": {Form: volumeName, Optional: true},
	"nodes[].disks[].size":   {Least: 1, Hint: "write it in GiB, such as 40"},

	"talos.version":                  {Form: versionForm, Hint: "write it as " + TalosVersion},
	"talos.schematic":                {Form: regexp.MustCompile(`^[0-9a-f]{64}$`)},
	"talos.extensions":               {Distinct: true, Hint: "write [siderolabs/iscsi-tools, siderolabs/util-linux-tools]; Longhorn needs both"},
	"talos.extensions[]":             {Form: regexp.MustCompile(`^siderolabs/[a-z0-9-]+$`)},
	"talos.kernelModules":            {Distinct: true, Default: []string{}},
	"talos.kernelModules[]":          {Form: regexp.MustCompile(`^[A-Za-z0-9_-]+$`)},
	"talos.diskEncryption":           {Optional: true},
	"talos.diskEncryption.ephemeral": {Words: []string{EncryptionNodeID, EncryptionNone}, Default: EncryptionNodeID},

	"talos.registryMirrors": {Optional: true, Hint: "write the addresses of mirrors for each registry, such as {docker.io: [https://mirror.example.com]}"},

	"nodes[].patches":            {Optional: true},
	"talos.patches":              {Optional: true},
	"talos.patches.all":          {Optional: true},
	"talos.patches.controlplane": {Optional: true},
	"talos.patches.worker":       {Optional: true},

	"kubernetes.version":       {Form: versionForm, Hint: "write it as v1.36.2"},
	"kubernetes.podSubnet":     {Default: netip.MustParsePrefix("10.244.0.0/16")},
	"kubernetes.serviceSubnet": {Default: netip.MustParsePrefix("10.96.0.0/16")},

	"kubernetes.cni":          {Words: []string{CNIFlannel, CNINone}, Default: CNIFlannel},
	"kubernetes.cniManifests": {Optional: true},

	"loadBalancer":        {Instead: none},
	"loadBalancer.pool":   {Nonempty: true, Hint: "write [192.168.1.220-192.168.1.239] or [192.168.1.224/28]"},
	"loadBalancer.pool[]": {Form: regexp.MustCompile(`^(\d{1,3}\.){3}\d{1,3}(/\d{1,2}|\s*-\s*(\d{1,3}\.){3}\d{1,3})$`)},

	"storage":              {Instead: none},
	"storage.replicas":     {Least: 1, Hint: "write how many nodes keep a copy of each volume, such as 2"},
	"storage.dataPath":     {Form: regexp.MustCompile(`^/var/`), Default: LonghornFolder},
	"storage.storageClass": {Form: label, Default: "longhorn"},

	"gitops.url":     {Form: regexp.MustCompile(`^https://[^@]+$`)},
	"gitops.branch":  {Form: regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`), Default: "main"},
	"gitops.tenancy": {Words: []string{TenancyMulti, TenancySingle}, Default: TenancyMulti},
	"gitops.path":    {Form: regexp.MustCompile(`^[^/.]`), Hint: "write the cluster's folder in the repository, such as clusters/blue"},

	"secrets.sops":                    {Single: true, Nonempty: true, Distinct: true, Hint: "write the file's name, such as secrets.sops.yaml, or a list of names"},
	"secrets.sops[]":                  {Form: regexp.MustCompile(`^[^/].*\.(yaml|yml|json)$`)},
	"secrets.plan":                    {Single: true, Optional: true, Nonempty: true, Distinct: true, Hint: "write the file's name, such as plan.secrets.sops.yaml, or a list of names"},
	"secrets.plan[]":                  {Form: regexp.MustCompile(`^[^/].*\.(yaml|yml|json)$`)},
	"secrets.infisical":               {Instead: NoInfisical},
	"secrets.infisical.url":           {Form: urlForm, Hint: "write https://eu.infisical.com"},
	"secrets.infisical.project":       {Form: regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)},
	"secrets.infisical.slug":          {Form: regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)},
	"secrets.infisical.environment":   {Form: regexp.MustCompile(`^[A-Za-z0-9_-]+$`), Hint: "write the environment's slug, such as prod"},
	"secrets.infisical.path":          {Form: regexp.MustCompile(`^/`), Hint: "write the folder, such as /clusters/blue"},
	"secrets.infisical.fluxPath":      {Form: regexp.MustCompile(`^/`), Optional: true},
	"secrets.infisical.workloadsPath": {Form: regexp.MustCompile(`^/`), Optional: true},
	"secrets.infisical.namespaces":    {Nonempty: true, Distinct: true, Default: workloadNamespaces, Hint: "write the namespaces that ask for secrets, such as [blog], or remove it"},
	"secrets.infisical.namespaces[]":  {Form: label},

	"state":             {Optional: true},
	"state.backend":     {Words: []string{StateLocal, StateS3}, Default: StateLocal},
	"state.s3":          {Optional: true}, // what it needs depends on state.backend
	"state.s3.bucket":   {Form: regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`), Optional: true},
	"state.s3.region":   {Optional: true},
	"state.s3.endpoint": {Form: urlForm, Optional: true},
}
