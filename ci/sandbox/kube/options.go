//go:build linux

package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tazlab.net/castle/ci/sandbox/kube/agent"
	"tazlab.net/castle/ci/sandbox/profile"
)

// Names of images whose programs can run as pods. All Deployments of External Secrets Operator use one.
const (
	ImageMetalLBController      = "quay.io/metallb/controller"
	ImageExternalSecrets        = "ghcr.io/external-secrets/external-secrets"
	ImageSourceController       = "ghcr.io/fluxcd/source-controller"
	ImageKustomizeController    = "ghcr.io/fluxcd/kustomize-controller"
	ImageHelmController         = "ghcr.io/fluxcd/helm-controller"
	ImageNotificationController = "ghcr.io/fluxcd/notification-controller"
)

// Binaries are the paths of programs.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	// Images are the programs of containers by image name, without tag or digest; a name also stands for all images below
	// it. Containers of other images run nothing. Programs must be static.
	Images map[string]string
}

func (b Binaries) check() error {
	var problems []error
	files := []string{b.Etcd, b.APIServer, b.ControllerManager, b.Scheduler}
	for _, file := range b.Images {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		if info, err := os.Stat(file); err != nil {
			problems = append(problems, fmt.Errorf("program of the control plane or of an image: %w", err))
		} else if info.Mode()&0o111 == 0 {
			problems = append(problems, fmt.Errorf("program %s is not executable", file))
		}
	}
	return errors.Join(problems...)
}

// Options configure a Plane.
type Options struct {
	Folder   string // etcd's data, nodes' disks and all logs; created
	Binaries Binaries
	Profile  profile.Profile
	// KubernetesVersion and OSImage are what nodes report, such as "v1.36.4" and "Talos (v1.13.9)".
	KubernetesVersion string
	OSImage           string
	// WebhookServes is called when a Service that the API server calls begins to answer. Nil: nobody is told.
	WebhookServes func(namespace, service string, at time.Time)
	// Exists is asked before a node pulls an image; its error is what that node's container runtime says in place of it. Nil: each image is there.
	Exists func(ctx context.Context, node, image string) error
	Log    *slog.Logger // nil: nothing is logged
}

// pull is how nodes pull an image.
func (o Options) pull() func(ctx context.Context, node, image string) error {
	pulls := profile.NewPulls(o.Profile)
	return func(ctx context.Context, node, image string) error {
		if o.Exists != nil {
			if err := o.Exists(ctx, node, image); err != nil {
				return err
			}
		}
		return pulls.Pull(ctx, image)
	}
}

// Node is a machine that runs pods.
type Node = agent.Node

// Config is what the machine configuration of a control plane says about the cluster.
type Config struct {
	PKI           PKI
	VIP           netip.Addr
	PodSubnet     netip.Prefix // 10.244.0.0/16
	ServiceSubnet netip.Prefix // 10.96.0.0/12
	Domain        string       // "cluster.local" when empty
	// SecretboxSecret encrypts Secrets in etcd: base64 of 32 bytes. They are not encrypted when it is empty.
	SecretboxSecret string
	CertSANs        []string // further names and addresses of the API server's certificate
	KubeProxy       bool     // pods of kube-proxy carry Services, and nobody does without; else another CNI, whose pods are not told from others
}

func (c Config) validate() error {
	switch {
	case !c.VIP.Is4():
		return fmt.Errorf("virtual IP %q is not an IPv4 address", c.VIP)
	case !c.PodSubnet.IsValid() || !c.ServiceSubnet.IsValid():
		return fmt.Errorf("pod subnet %q and service subnet %q must be CIDRs", c.PodSubnet, c.ServiceSubnet)
	case c.PodSubnet.Overlaps(c.ServiceSubnet):
		return fmt.Errorf("pod subnet %s overlaps service subnet %s", c.PodSubnet, c.ServiceSubnet)
	}
	return nil
}

func (c Config) domain() string {
	if c.Domain == "" {
		return "cluster.local"
	}
	return c.Domain
}

// service is the first service address, where pods find the API server; dns is the tenth, as everywhere.
func (c Config) service() netip.Addr { return c.ServiceSubnet.Masked().Addr().Next() }

func (c Config) dns() netip.Addr {
	address := c.ServiceSubnet.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return address
}

// inMemory is a folder that no disk keeps, for keys, tokens and mounted Secrets of the plane on a folder.
func inMemory(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join("/dev/shm", "castle-kube-"+hex.EncodeToString(sum[:6]))
}
