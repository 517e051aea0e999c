package talos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/cluster/config"
)

// What the image factory calls the extension that stands for the schematic itself, whose version is the schematic's id
// (siderolabs/image-factory, internal/asset/schematic.go), and what its own extensions are named by in a schematic.
const (
	schematicExtension = "schematic"
	official           = "siderolabs/"
)

// fits compares what a machine in maintenance mode runs with what is described. A machine that was cloned keeps its template's Talos:
// where the disk has Talos's META partition, as the factory's images for nocloud do, a configuration does not run the installer
// (internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_sequencer.go of Talos 1.13). So what differs here differs for good, and shows
// only minutes later: Longhorn without iscsi-tools crashes over and over. A TemplateError says what differs; a machine that does not
// tell passes.
func (n *node) fits(ctx context.Context, c *config.Cluster) error {
	var differs []string
	if !c.MakesMachines() {
		// One that was started from an ISO or over the network has no disk with Talos yet: the installer runs, and brings what is described.
		if installed, err := n.installed(ctx); err != nil || !installed {
			return err
		}
	}
	version, err := n.insecure.Version(ctx)
	switch {
	case err == nil:
		if tag := version.GetMessages()[0].GetVersion().GetTag(); tag != c.Talos.Version {
			differs = append(differs, fmt.Sprintf("it runs Talos %s, not %s", tag, c.Talos.Version))
		}
	case !untold(err):
		return fmt.Errorf("%s does not tell its version: %w", n.Name, err)
	}
	list, err := safe.StateListAll[*runtime.ExtensionStatus](ctx, n.insecure.COSI)
	switch {
	case err == nil:
		var schematic string
		var has []string
		for extension := range list.All() {
			metadata := extension.TypedSpec().Metadata
			if metadata.Name == schematicExtension {
				schematic = metadata.Version
			} else {
				has = append(has, strings.TrimPrefix(metadata.Name, official))
			}
		}
		differs = append(differs, extensions(c, schematic, has)...)
	case !untold(err):
		return fmt.Errorf("%s does not tell its extensions: %w", n.Name, err)
	}
	if differs == nil {
		return nil
	}
	if !c.MakesMachines() {
		return &InstalledError{Node: n.Name, Address: n.Address, Differs: differs, Talos: c.Talos}
	}
	return &TemplateError{Node: n.Name, Template: c.Proxmox.CloneOf(n.Node), Differs: differs, Talos: c.Talos}
}

// installed tells whether a machine in maintenance mode has Talos on its disk, as Talos itself does: by its META partition (Installed in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_state.go of Talos 1.13).
func (n *node) installed(ctx context.Context) (bool, error) {
	meta, err := safe.StateGetByID[*block.VolumeStatus](ctx, n.insecure.COSI, constants.MetaPartitionLabel)
	switch {
	case err == nil && meta.TypedSpec().Phase == block.VolumePhaseReady:
		return true, nil
	case err == nil && meta.TypedSpec().Phase == block.VolumePhaseMissing:
		return false, nil
	case err == nil: // it looks for it yet
		err = status.Errorf(codes.Unavailable, "its META is %s", meta.TypedSpec().Phase)
	case untold(err), state.IsNotFoundError(err):
		return false, nil
	}
	return false, fmt.Errorf("%s does not tell whether Talos is on its disk: %w", n.Name, err)
}

// extensions says what differs from the schematic that is described. One that an image's own schematic cannot tell is looked at by the
// extensions that are there.
func extensions(c *config.Cluster, schematic string, has []string) []string {
	if schematic == c.Talos.Schematic {
		return nil
	}
	var differs []string
	for _, extension := range c.Talos.Extensions {
		if !slices.Contains(has, strings.TrimPrefix(extension, official)) {
			differs = append(differs, "it has no "+extension)
		}
	}
	if schematic != "" {
		differs = append(differs, fmt.Sprintf("its schematic is %s", schematic))
	}
	return differs
}

// untold tells that a machine's API is there and does not answer such a question, as maintenance modes before 1.13 do not.
func untold(err error) bool {
	code := client.StatusCode(err)
	return code == codes.Unimplemented || code == codes.PermissionDenied
}

// TemplateError is a machine that was cloned from a template of another Talos than cluster.yaml describes. Nothing was applied to it.
type TemplateError struct {
	Node     string
	Template config.Clone
	Differs  []string // never empty
	Talos    config.Talos
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s was cloned from a template that is not what cluster.yaml describes: %s; it was not configured. Make template %d on %s anew from "+
		"https://factory.talos.dev/image/%s/%s/nocloud-amd64.raw.xz, or correct talos in cluster.yaml, then destroy and create",
		e.Node, strings.Join(e.Differs, ", "), e.Template.Template, e.Template.Host, e.Talos.Schematic, e.Talos.Version)
}

// InstalledError is a machine that castle did not make and that has another Talos on its disk than cluster.yaml describes. Nothing was
// applied to it.
type InstalledError struct {
	Node    string
	Address netip.Addr
	Differs []string // never empty
	Talos   config.Talos
}

func (e *InstalledError) Error() string {
	return fmt.Sprintf("%s (%s) has a Talos on its disk that is not what cluster.yaml describes: %s; it was not configured, since Talos does not install itself over another one. "+
		"Wipe that disk and start the machine from https://factory.talos.dev/image/%s/%s/metal-amd64.iso, or correct talos in cluster.yaml, then create",
		e.Node, e.Address, strings.Join(e.Differs, ", "), e.Talos.Schematic, e.Talos.Version)
}
