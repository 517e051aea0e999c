//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// tools are what the world and the layers run, by the names that castle builds them under.
var tools = []string{"tofu", "terragrunt", "kubernetes", "etcd", "metallb", "external-secrets",
	"source-controller", "kustomize-controller", "helm-controller", "notification-controller"}

// providers are the layers' providers with the place where OpenTofu looks for them.
var providers = map[string]string{
	"provider-helm":       "hashicorp/helm/3.2.0",
	"provider-kubectl":    "alekc/kubectl/2.2.0",
	"provider-kubernetes": "hashicorp/kubernetes/3.2.1",
	"provider-proxmox":    "bpg/proxmox/0.106.0",
}

// programs are the world's real programs, as castle-sandbox names them, in the folders of their tools.
var programs = map[string]string{
	"etcd": "etcd/etcd", "kube-apiserver": "kubernetes/kube-apiserver",
	"kube-controller-manager": "kubernetes/kube-controller-manager", "kube-scheduler": "kubernetes/kube-scheduler",
	"metallb-controller": "metallb/controller", "external-secrets": "external-secrets/external-secrets",
	"source-controller":       "source-controller/source-controller",
	"kustomize-controller":    "kustomize-controller/kustomize-controller",
	"helm-controller":         "helm-controller/helm-controller",
	"notification-controller": "notification-controller/notification-controller",
}

// setupTime bounds what is built before the first measurement: nothing, once castle's cache holds the tools.
const setupTime = time.Hour

// shop is what all runs share: programs, charts, and a copy of the layers that nobody edits meanwhile.
type shop struct {
	options
	self    string // this program, which plays parts in the runs
	cluster string // castle-cluster
	sandbox string // castle-sandbox
	tools   string // a folder for each tool
	bin     string // the world's programs
	path    string // castle-cluster, tofu and terragrunt
	home    string // what the tools see as home and as folder for temporary files
	charts  string
}

func newShop(ctx context.Context, o options) (*shop, error) {
	castle, err := exec.LookPath(o.castle)
	if err != nil {
		return nil, err
	}
	o.castle = castle
	if o.terragrunt == "" {
		o.terragrunt = filepath.Join(o.root, "terragrunt")
	}
	if err := absolute(&o.root, &o.castle, &o.work, &o.terragrunt); err != nil {
		return nil, err
	}
	s := &shop{options: o, cluster: filepath.Join(o.work, "castle-cluster"), sandbox: filepath.Join(o.work, "castle-sandbox"), tools: filepath.Join(o.work, "tools"),
		bin: filepath.Join(o.work, "bin"), path: filepath.Join(o.work, "path"), home: filepath.Join(o.work, "home"),
		charts: filepath.Join(o.work, "charts")}
	if s.self, err = os.Executable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	if err := s.gather(ctx); err != nil {
		return nil, err
	}
	if err := s.command(ctx, o.root, "go", "build", "-o", o.work, "./ci/cmd/castle-cluster", "./ci/cmd/castle-sandbox"); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(s.charts); err != nil {
		return nil, err
	}
	return s, s.command(ctx, o.root, s.cluster, "charts", "--layers="+o.terragrunt, "--tools="+s.tools, "--out="+s.charts)
}

func (s *shop) command(ctx context.Context, dir, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, out)
	}
	return nil
}

// gather links the tools out of castle's cache to where they are looked for.
func (s *shop) gather(ctx context.Context) error {
	names := append([]string{}, tools...)
	for name := range providers {
		names = append(names, name)
	}
	args := append([]string{"tool"}, names...)
	if s.cache != "" {
		args = append(args, "--cache="+s.cache)
	}
	command := exec.CommandContext(ctx, s.castle, args...)
	command.Dir, command.Stderr = s.root, os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("castle tool: %w", err)
	}
	folders := strings.Fields(string(out))
	if len(folders) != len(names) {
		return fmt.Errorf("castle tool printed %d folders for %d tools", len(folders), len(names))
	}
	links := map[string]string{filepath.Join(s.path, "castle-cluster"): s.cluster}
	for i, name := range names {
		links[filepath.Join(s.tools, name)] = folders[i]
		if place, is := providers[name]; is {
			version := filepath.Base(place)
			links[filepath.Join(s.home, ".terraform.d/plugins/registry.opentofu.org", place, "linux_"+runtime.GOARCH, "terraform-"+name+"_v"+version)] =
				filepath.Join(folders[i], "terraform-"+name)
		}
	}
	for _, name := range []string{"tofu", "terragrunt"} {
		links[filepath.Join(s.path, name)] = filepath.Join(s.tools, name, name)
	}
	for name, below := range programs {
		links[filepath.Join(s.bin, name)] = filepath.Join(s.tools, below)
	}
	for link, target := range links {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	return nil
}

func cores() int { return runtime.NumCPU() }
