package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed modules.txt
var modulesTable string

//go:embed extensions.txt
var extensionsTable string

// catalogue says in which minor versions of Talos a name exists.
type catalogue map[string][]int // name → minors of Talos 1

var (
	modules    = sync.OnceValue(func() catalogue { return readCatalogue(modulesTable) })
	extensions = sync.OnceValue(func() catalogue { return readCatalogue(extensionsTable) })
)

// readCatalogue reads lines such as "drbd 1.10-1.11,1.13". The tables are part of the program; the package's tests show that
// every line can be read.
func readCatalogue(table string) catalogue {
	list := catalogue{}
	for line := range strings.Lines(table) {
		name, spans, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		for span := range strings.SplitSeq(spans, ",") {
			first, last, ranged := strings.Cut(span, "-")
			if !ranged {
				last = first
			}
			for minor := minorOf(first); minor <= minorOf(last); minor++ {
				list[name] = append(list[name], minor)
			}
		}
	}
	return list
}

// minorOf gives 13 for "1.13", -1 for anything else.
func minorOf(version string) int {
	var minor int
	if _, err := fmt.Sscanf(version, "1.%d", &minor); err != nil {
		return -1
	}
	return minor
}

func (c catalogue) has(name string, minor int) bool { return slices.Contains(c[name], minor) }

// oldest is the first minor version of Talos 1 whose machine configuration castle can write, see ci/cluster/talos. The tables go
// further back, so that a name which has since been dropped is still recognised.
const oldest = 12

// minors are the minor versions of Talos 1 that a cluster can have, in order.
func minors() []int {
	var list []int
	for _, of := range extensions() {
		for _, minor := range of {
			if minor >= oldest && !slices.Contains(list, minor) {
				list = append(list, minor)
			}
		}
	}
	slices.Sort(list)
	return list
}

// moduleExtensions names the extensions that bring modules which Talos itself lacks: the modules.txt or the manifest of
// each in github.com/siderolabs/extensions, branch release-1.13.
var moduleExtensions = map[string][]string{
	"amdgpu":             {"siderolabs/amdgpu"},
	"binfmt_misc":        {"siderolabs/binfmt-misc"},
	"btrfs":              {"siderolabs/btrfs"},
	"drbd":               {"siderolabs/drbd"},
	"drbd_transport_tcp": {"siderolabs/drbd"},
	"gasket":             {"siderolabs/gasket-driver"},
	"apex":               {"siderolabs/gasket-driver"},
	"i915":               {"siderolabs/i915"},
	"joydev":             {"siderolabs/joydev"},
	"mei":                {"siderolabs/mei"},
	"mei_me":             {"siderolabs/mei"},
	"nfsd":               {"siderolabs/nfsd"},
	"nvidia":             nvidia,
	"nvidia_drm":         nvidia,
	"nvidia_modeset":     nvidia,
	"nvidia_uvm":         nvidia,
	"thunderbolt":        {"siderolabs/thunderbolt"},
	"thunderbolt_net":    {"siderolabs/thunderbolt"},
	"uhid":               {"siderolabs/uhid"},
	"uinput":             {"siderolabs/uinput"},
	"uvcvideo":           {"siderolabs/v4l-uvc-drivers"},
	"xe":                 {"siderolabs/xe"},
	"zfs":                {"siderolabs/zfs"},
}

var nvidia = []string{
	"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nvidia-open-gpu-kernel-modules-lts",
	"siderolabs/nonfree-kmod-nvidia-production", "siderolabs/nonfree-kmod-nvidia-lts",
}
