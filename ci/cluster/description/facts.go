package description

import (
	"net/netip"
	"regexp"
)

// fact is what is known about a field beyond its type and its comment.
type fact struct {
	hint      string // what to write, where the name alone does not tell
	byDefault any    // the value of a field that is left out
	optional  bool   // may be left out without having a default

	// An editor checks these too, by the schema.

	words    []string       // all values that a text can have
	form     *regexp.Regexp // what a text must match; of URLs and paths the checker asks for more than this
	least    int            // the smallest number, 0 for no limit
	most     int            // the largest number, 0 for no limit
	nonempty bool           // the list must hold something
	distinct bool           // the list must hold nothing twice
}

// factOf finds what is known of the field at a path such as "nodes[2].role".
func factOf(path string) fact { return facts[index.ReplaceAllString(path, "[]")] }

var index = regexp.MustCompile(`\[\d+\]`)

// mayMiss says whether a field can be left out.
func mayMiss(path string) bool {
	f := factOf(path)
	return f.optional || f.byDefault != nil
}

// Proxmox gives ids from 100 to 999999999 (its own manual, qm).
const firstID, lastID = 100, 999999999

// minima are what Talos itself asks for, docs.siderolabs.com, "System requirements" (the same from v1.10 to v1.13).
var minima = map[string]struct{ cores, memory, disk int }{ // memory in MiB, disk in GiB
	RoleControlPlane: {2, 2048, 10},
	RoleWorker:       {1, 1024, 10},
}

// required are the extensions without which Longhorn cannot attach a volume (longhorn.io/docs, "Talos Linux Support").
var required = []string{"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"}

// Forms that more than one field has.
var (
	label       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // a DNS label, RFC 1123
	versionForm = regexp.MustCompile(`^v(\d+\.\d+)\.\d+$`)
	urlForm     = regexp.MustCompile(`^https?://[^@]+$`)
)

// facts by the field's path; "[]" stands for any item of a list.
var facts = map[string]fact{
	"name":     {form: label},
	"platform": {words: []string{PlatformProxmox, PlatformAWS, PlatformSandbox}, hint: "write proxmox, or sandbox for the proving ground"},
	"endpoint": {hint: "write the virtual IP of the Kubernetes API, a free address of the subnet"},

	"network.subnet": {hint: "write it as 192.168.1.0/24"},
	"network.dns":    {nonempty: true, distinct: true, hint: "write at least one address, such as the gateway's"},

	"proxmox.url":      {form: regexp.MustCompile(`^https://[^/@?#]+/?$`), hint: "write it as https://192.168.1.10:8006/"},
	"proxmox.insecure": {byDefault: false},
	"proxmox.template": {least: firstID, most: lastID, hint: "write the VM id of the Talos template"},
	// PVE::JSONSchema, pve-storage-id
	"proxmox.storage": {form: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`)},
	// Linux: 15 characters
	"proxmox.bridge": {form: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,14}$`)},

	"vmIDs.first": {least: firstID, most: lastID},
	"vmIDs.last":  {least: firstID, most: lastID},

	"nodes":                {nonempty: true},
	"nodes[].name":         {form: label},
	"nodes[].role":         {words: []string{RoleControlPlane, RoleWorker}, hint: "write controlplane or worker"},
	"nodes[].vmID":         {least: firstID, most: lastID, hint: "write a free id of the range vmIDs"},
	"nodes[].host":         {form: label, hint: "write the name of the Proxmox node"},
	"nodes[].cores":        {least: minima[RoleWorker].cores},
	"nodes[].memory":       {least: minima[RoleWorker].memory, hint: "write it in MiB, such as 8192"},
	"nodes[].disks":        {nonempty: true, hint: "write at least one with its size in GiB: [{size: 40}]"},
	"nodes[].disks[].size": {least: 1, hint: "write it in GiB, such as 40"},

	"talos.version":                  {form: versionForm, hint: "write it as v1.13.0"},
	"talos.schematic":                {form: regexp.MustCompile(`^[0-9a-f]{64}$`)},
	"talos.extensions":               {distinct: true, hint: "write [siderolabs/iscsi-tools, siderolabs/util-linux-tools]; Longhorn needs both"},
	"talos.extensions[]":             {form: regexp.MustCompile(`^siderolabs/[a-z0-9-]+$`)},
	"talos.kernelModules":            {distinct: true, byDefault: []string{}},
	"talos.kernelModules[]":          {form: regexp.MustCompile(`^[A-Za-z0-9_-]+$`)},
	"talos.diskEncryption":           {optional: true},
	"talos.diskEncryption.ephemeral": {words: []string{EncryptionNodeID, EncryptionNone}, byDefault: EncryptionNodeID},

	"kubernetes.version":       {form: versionForm, hint: "write it as v1.36.2"},
	"kubernetes.podSubnet":     {byDefault: netip.MustParsePrefix("10.244.0.0/16")},
	"kubernetes.serviceSubnet": {byDefault: netip.MustParsePrefix("10.96.0.0/16")},

	"loadBalancer.pool":   {nonempty: true, hint: "write [192.168.1.220-192.168.1.239] or [192.168.1.224/28]"},
	"loadBalancer.pool[]": {form: regexp.MustCompile(`^(\d{1,3}\.){3}\d{1,3}(/\d{1,2}|\s*-\s*(\d{1,3}\.){3}\d{1,3})$`)},

	"storage.replicas":     {least: 1, hint: "write how many workers keep a copy of each volume, such as 2"},
	"storage.dataPath":     {form: regexp.MustCompile(`^/var/`), byDefault: "/var/lib/longhorn"},
	"storage.storageClass": {form: label, byDefault: "longhorn"},

	"gitops.url":    {form: regexp.MustCompile(`^https://[^@]+$`)},
	"gitops.branch": {form: regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`), byDefault: "main"},
	"gitops.path":   {form: regexp.MustCompile(`^[^/.]`), hint: "write the cluster's folder in the repository, such as clusters/blue"},

	"secrets.sops":                  {form: regexp.MustCompile(`^[^/]`), hint: "write the file's name, such as secrets.sops.yaml"},
	"secrets.infisical.url":         {form: urlForm, hint: "write https://eu.infisical.com"},
	"secrets.infisical.project":     {form: regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)},
	"secrets.infisical.slug":        {form: regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)},
	"secrets.infisical.environment": {form: regexp.MustCompile(`^[A-Za-z0-9_-]+$`), hint: "write the environment's slug, such as prod"},
	"secrets.infisical.path":        {form: regexp.MustCompile(`^/`), hint: "write the folder, such as /clusters/blue"},

	"state":             {optional: true},
	"state.backend":     {words: []string{StateLocal, StateS3}, byDefault: StateLocal},
	"state.s3":          {optional: true}, // what it needs depends on state.backend
	"state.s3.bucket":   {form: regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`), optional: true},
	"state.s3.region":   {optional: true},
	"state.s3.endpoint": {form: urlForm, optional: true},
}
