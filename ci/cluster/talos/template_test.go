package talos_test

import (
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/sandbox/profile"
)

func TestMachinesFromAnotherTemplateAreNamedAndNotConfigured(t *testing.T) {
	for fault, differs := range map[string][]string{
		"wrong-template=v1.12.4":     {"it runs Talos v1.12.4, not v1.13.9"},
		"wrong-template=iscsi-tools": {"it has no siderolabs/iscsi-tools, its schematic is 376567988ad3"},
		"wrong-template":             {"it has no siderolabs/iscsi-tools, it has no siderolabs/util-linux-tools, its schematic is"},
	} {
		t.Run(fault, func(t *testing.T) {
			w := newWorld(t, homelab(t, 0, fault))
			w.powerOn()
			report, _, err := w.create()
			as[*talos.TemplateError](t, err)
			for _, want := range append(differs, "/613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245/v1.13.9/nocloud-amd64.raw.xz", "destroy and create") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
			for _, node := range w.cluster.Nodes {
				if !strings.Contains(err.Error(), node.Name+" was cloned") {
					t.Errorf("%s is not named: %v", node.Name, err)
				}
				if stage := w.fleet.Stage(node.VMID); stage != "maintenance" {
					t.Errorf("%s is %s", node.Name, stage)
				}
			}
			if report.Changed() {
				t.Errorf("something was changed: %+v", report)
			}

			// The way out that the error names ends it.
			for _, node := range w.cluster.Nodes {
				if err := w.fleet.Removed(node.VMID); err != nil {
					t.Fatal(err)
				}
			}
			delete(w.fleet.Profile.Faults, profile.WrongTemplate)
			w.powerOn()
			w.mustCreate()
		})
	}
}

// An image that the factory did not make tells no schematic: what it has to have counts then.
func TestAnImageThatIsNotTheFactorysIsKnownByItsExtensions(t *testing.T) {
	for name, c := range map[string]struct {
		has  []string
		fits bool
	}{
		"all of them and one more": {[]string{"siderolabs/util-linux-tools", "siderolabs/qemu-guest-agent", "siderolabs/iscsi-tools"}, true},
		"one too few":              {[]string{"siderolabs/util-linux-tools"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, homelab(t, 0))
			w.fleet.Template.Schematic, w.fleet.Template.Extensions = "", c.has
			w.powerOn()
			_, _, err := w.create()
			if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "it has no siderolabs/iscsi-tools; it was not configured") {
				t.Errorf("got %v", err)
			}
		})
	}
}
