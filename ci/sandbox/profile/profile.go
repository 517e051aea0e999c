// Package profile says how long things take in the proving ground and what goes wrong there on demand. It never acts
// itself: each simulator asks it.
package profile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// Profile is the delays, the scale that all of them are multiplied by, and the faults of one world.
type Profile struct {
	Scale  float64 // 1 is real time, 0.05 what tests use
	Delays Delays
	Faults Faults
}

// Delays are the times that a homelab's hardware and network take and a simulator has to add. Each is real time, before
// scaling.
type Delays struct {
	InfisicalLogin   time.Duration // a universal-auth login
	InfisicalRequest time.Duration // every other request
	VMClone          time.Duration // a full clone of the template, one VM
	VMConfig         time.Duration // a change of configuration, a resize of a disk
	VMStart          time.Duration
	VMStop           time.Duration
	VMDelete         time.Duration
	Boot             time.Duration // from start to Talos answering in maintenance mode
	Configure        time.Duration // from an applied configuration to the configured Talos API, where the disk has Talos already
	Install          time.Duration // from an applied configuration to the reboot, where it has not
	Reboot           time.Duration // from the reboot to the configured Talos API
	Bootstrap        time.Duration // from the bootstrap call, and etcd's image, to the first healthy etcd member
	EtcdJoin         time.Duration // from etcd's image on a further control plane to a learner, of which etcd lets in one at a time
	EtcdPromote      time.Duration // from there to a voter: Talos's first try, when the learner cannot be one yet, takes 30 s, and the next comes 15 s later
	EtcdHealth       time.Duration // from there until etcd's health check has looked again
	EtcdSettles      time.Duration // from a member's start until etcd counts it where members are changed: the HealthInterval of etcd 3.6
	EtcdLeave        time.Duration // from a member's removal until its etcd has stopped and its data is gone
	EtcdLeaveAgain   time.Duration // until a machine that etcd does not let go yet tries again
	ControlPlane     time.Duration // from etcd's quorum, and the images of static pods, to these running, before the API server's own start
	VIP              time.Duration // from quorum, or the end of a holder, to the address being held
	VIPLease         time.Duration // until a holder whose power was cut has lost the address in etcd
	Kubelet          time.Duration // from the running node to its registration, and to Ready
	Images           []Image       // how long pulling takes; the first match counts
	ImagePull        time.Duration // any other image
	WebhookServes    time.Duration // from a process's own readiness to its webhook answering
}

// Image is the time to pull images whose name contains a text.
type Image struct {
	Contains string
	Pull     time.Duration
}

// Pull is how long pulling an image takes.
func (d Delays) Pull(image string) time.Duration {
	for _, known := range d.Images {
		if strings.Contains(image, known.Contains) {
			return known.Pull
		}
	}
	return d.ImagePull
}

// Homelab adds up to what published runs on one Proxmox host show: secrets 10 s, VMs and Talos 1 min 53 s, and then the
// pull and start of what each layer installs. Two things differ from those runs: a template has Talos already, so that nothing is installed and
// nothing restarts, for which Configure is an estimate (a node in a container took 1 s, which formats and encrypts no disk); and how etcd's
// members join, one after the other, and leave was measured on nodes of Talos 1.13.9.
func Homelab() Delays {
	return Delays{
		InfisicalLogin: 2 * time.Second, InfisicalRequest: 4 * time.Second,
		VMClone: 15 * time.Second, VMConfig: time.Second, VMStart: 2 * time.Second,
		VMStop: 3 * time.Second, VMDelete: 4 * time.Second,
		Boot: 18 * time.Second, Configure: 8 * time.Second, Install: 28 * time.Second, Reboot: 22 * time.Second,
		Bootstrap: 2 * time.Second, EtcdJoin: 3 * time.Second, EtcdPromote: 45 * time.Second, EtcdHealth: 20 * time.Second,
		EtcdSettles: 5 * time.Second, EtcdLeave: 7 * time.Second, EtcdLeaveAgain: 10 * time.Second,
		ControlPlane: 2 * time.Second, VIP: 3 * time.Second, VIPLease: 60 * time.Second,
		Kubelet: 2 * time.Second,
		Images: []Image{
			{"external-secrets", 22 * time.Second},
			{"metallb", 20 * time.Second},
			{"longhorn-", 75 * time.Second},
			{"fluxcd", 28 * time.Second},
			{"siderolabs/kubelet", 12 * time.Second},
			{machineconfig.PauseImage, 0}, // each node has it
		},
		ImagePull:     6 * time.Second,
		WebhookServes: 4 * time.Second,
	}
}

// Names of profiles that New knows.
const (
	NameHomelab = "homelab"
	NameNone    = "none" // every delay is 0: what is left is Castle's and the tools' own time
)

// New makes a profile by name; scale must not be negative.
func New(name string, scale float64, faults Faults) (Profile, error) {
	if scale < 0 {
		return Profile{}, fmt.Errorf("time scale %v is negative: 1 is real time, 0.05 is twenty times as fast", scale)
	}
	switch name {
	case NameHomelab:
		return Profile{Scale: scale, Delays: Homelab(), Faults: faults}, nil
	case NameNone:
		return Profile{Scale: scale, Faults: faults}, nil
	default:
		return Profile{}, fmt.Errorf("profile %q is unknown: there are %s and %s", name, NameHomelab, NameNone)
	}
}

// Scaled is a delay in this world's time.
func (p Profile) Scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * p.Scale) }

// Sleep waits for a delay in this world's time, or until the context ends and then returns its error.
func (p Profile) Sleep(ctx context.Context, d time.Duration) error {
	scaled := p.Scaled(d)
	if scaled <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(scaled)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Faults are what goes wrong, by name. A fault without a value has "".
type Faults map[string]string

// Names of faults. The comment says what the value is.
const (
	WebhookLate     = "webhook-late"       // duration: the webhook's pod is Running, its port refuses, its endpoint is not ready
	WebhookLies     = "webhook-lies"       // duration: the endpoint is ready, its port refuses
	BootstrapNoop   = "bootstrap-noop"     // how many bootstrap calls are accepted and do nothing
	TimeLate        = "time-late"          // duration: a machine's clock is in step only that long after its services start
	BootstrapSlow   = "bootstrap-slow"     // duration: etcd takes that long to stop for a bootstrap
	VIPFlaps        = "vip-flaps"          // duration: the VIP answers once, then not for that long
	APIRestarts     = "apiserver-restarts" // duration: once, the API server of who holds the VIP restarts, and refuses for that long
	APIEnds         = "apiserver-ends"     // duration: once, when the first known program runs, the API server is ended and started again; what it has not ended by then is cut
	KubeletRestarts = "kubelet-restarts"   // duration: once, the kubelet of the node where the first known program runs is away for that long
	Ghosts          = "ghosts"             // VM id: its disk holds a former cluster's etcd; it never gets past Preparing
	EtcdAlarm       = "etcd-alarm"         // VM id: its member raises NOSPACE once it votes, until that is disarmed
	WrongTemplate   = "wrong-template"     // version of Talos that is in what is cloned, or name of an extension that is not; "": no extension at all
	DHCPDrift       = "dhcp-drift"         // VM id: it comes up at another address than declared
	ProxmoxMoods    = "proxmox-moods"      // how many requests fail with a lock timeout before one succeeds
	StorageLock     = "storage-lock"       // how often the lock of a storage is not to be had in time for a disk that is to be made or moved
	CloneFails      = "clone-fails"        // VM id: its clone task ends in an error
	DiskStays       = "disk-stays"         // VM id: when it is removed, the lock of its disks' storage is not to be had, and they stay behind
	InfisicalMoods  = "infisical-moods"    // how many requests answer 429 or 500 before one succeeds
	SecretMissing   = "secret-missing"     // name of a secret that Infisical does not hold
	FluxNoSecret    = "flux-no-secret"     // the Git credentials are refused

	SecretHidden      = "secret-hidden"      // name of a secret, or all: identities see that it is there, and may not read its value
	InfisicalPaths    = "infisical-paths"    // glob of the paths that the roles of identities are bound to; "": ones that no cluster uses
	InfisicalApproval = "infisical-approval" // glob of the paths where a change waits for an approval; "": all

	PrivilegeMissing = "privilege-missing" // privileges of Proxmox's, with commas between: the token has them nowhere
	StorageFull      = "storage-full"      // storage of Proxmox: 1 GiB of it is free, and nothing can be cloned to it
	ClockSkew        = "clock-skew"        // duration: Proxmox's clock is ahead, or with a minus behind
	AddressTaken     = "address-taken"     // address: a stranger answers there, at port 22

	Uplink       = "uplink"        // such as 16Mbit: all nodes pull through one line of that width, each image its size
	HubLimit     = "hub-limit"     // duration: since the first image of Docker Hub's, it answers 429
	ImageMissing = "image-missing" // part of an image's name: such images do not exist
)

// AllSecrets is the value of SecretHidden that hides all of them.
const AllSecrets = "all"

var faultNames = []string{WebhookLate, WebhookLies, BootstrapNoop, TimeLate, BootstrapSlow, VIPFlaps, APIRestarts, APIEnds, KubeletRestarts, Ghosts, EtcdAlarm, WrongTemplate, DHCPDrift, ProxmoxMoods,
	StorageLock, CloneFails, DiskStays, InfisicalMoods, SecretMissing, SecretHidden, InfisicalPaths, InfisicalApproval, FluxNoSecret, PrivilegeMissing, StorageFull, ClockSkew, AddressTaken, Uplink, HubLimit, ImageMissing}

// ParseFaults reads "name" and "name=value" texts; every unknown name is reported, with the known ones.
func ParseFaults(texts []string) (Faults, error) {
	faults := Faults{}
	var unknown []string
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if !slices.Contains(faultNames, name) {
			unknown = append(unknown, name)
			continue
		}
		if name == Uplink {
			if _, err := ParseWidth(value); err != nil {
				return nil, err
			}
		}
		faults[name] = value
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown fault %s: there are %s", strings.Join(unknown, ", "), strings.Join(faultNames, ", "))
	}
	return faults, nil
}

// Has tells whether the fault is wanted.
func (f Faults) Has(name string) bool {
	_, has := f[name]
	return has
}

// Duration is the fault's value as a duration, otherwise the one given; 0 and false where the fault is not wanted.
func (f Faults) Duration(name string, otherwise time.Duration) (time.Duration, bool) {
	value, has := f[name]
	if !has {
		return 0, false
	}
	if d, err := time.ParseDuration(value); err == nil {
		return d, true
	}
	return otherwise, true
}

// Count is the fault's value as a number, otherwise the one given; 0 where the fault is not wanted.
func (f Faults) Count(name string, otherwise int) int {
	value, has := f[name]
	if !has {
		return 0
	}
	var n int
	if _, err := fmt.Sscanf(value, "%d", &n); err == nil {
		return n
	}
	return otherwise
}

// Is tells whether the fault is wanted for that value, such as one VM id.
func (f Faults) Is(name string, value any) bool {
	wanted, has := f[name]
	return has && wanted == fmt.Sprint(value)
}
