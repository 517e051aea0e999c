package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/api/v1alpha1"
	cosi "github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Template is the disk image that machines are cloned from. What is in it, a machine has for as long as it has that disk: where there is
// a META partition, which images for nocloud come with, a configuration does not run the installer (isInstalled and Install in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_sequencer.go of Talos 1.13). Upgrades are not played.
type Template struct {
	Talos      string   `json:"talos"`     // "v1.13.9"
	Schematic  string   `json:"schematic"` // the image factory's id; "" for an image that is not the factory's
	Extensions []string `json:"extensions,omitempty"`
}

// clone copies the template to a VM's disk that has nothing yet, with what the fault wrong-template makes of it, and says what is on it.
func (f *Fleet) clone(vm VM) Template {
	d := f.state.disk(vm.ID)
	switch {
	case d.Template != nil:
		return *d.Template
	case vm.Bare: // Sidero Labs' ISO, without any extension
		return Template{Talos: f.Template.Talos, Schematic: otherSchematic}
	}
	template := f.Template
	if wrong, has := f.Profile.Faults[profile.WrongTemplate]; has {
		template = template.wrong(wrong)
	}
	d.Template = &template
	f.keep()
	return template
}

// install is what the installer of a configuration puts on a disk that has no Talos: what the image's name says of version and schematic. A disk
// that has one keeps it.
func (m *machine) install(config []byte) {
	conf, err := parse(config)
	d := m.fleet.state.disk(m.vm.ID)
	if err != nil || d.Template != nil {
		return
	}
	image := conf.provider.Machine().Install().Image()
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	made := Template{Talos: tag(image), Schematic: name}
	if name == m.fleet.Template.Schematic {
		made.Extensions = m.fleet.Template.Extensions
	}
	d.Template, m.template = &made, made
}

// otherSchematic is the factory's for an image without any customization (the README of siderolabs/image-factory).
const otherSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// wrong is a template with another version of Talos, or without an extension.
func (t Template) wrong(what string) Template {
	if strings.HasPrefix(what, "v") {
		t.Talos = what
		return t
	}
	t.Schematic = otherSchematic
	t.Extensions = slices.DeleteFunc(slices.Clone(t.Extensions), func(extension string) bool { return what == "" || strings.HasSuffix(extension, "/"+what) })
	return t
}

// resources are those of a machine's resources that are played: the configuration that it runs with, its UUID,
// whether its disk has a META partition, its extensions, and the factory's extension that stands for the schematic
// (schematicExtension in internal/asset of siderolabs/image-factory). Their ids are those of
// ExtensionStatusController, in internal/app/machined/pkg/controllers/runtime/extension_status.go of Talos 1.13.
type resources struct {
	v1alpha1.UnimplementedStateServer
}

// Get answers from the resources of the machine that the call is for.
func (resources) Get(ctx context.Context, request *v1alpha1.GetRequest) (*v1alpha1.GetResponse, error) {
	held, err := target(ctx).resources(ctx)
	if err != nil {
		return nil, err
	}
	return held.Get(ctx, request)
}

// List does so for all of a kind.
func (resources) List(request *v1alpha1.ListRequest, stream grpc.ServerStreamingServer[v1alpha1.ListResponse]) error {
	held, err := target(stream.Context()).resources(stream.Context())
	if err != nil {
		return err
	}
	return held.List(request, stream)
}

func (m *machine) resources(ctx context.Context) (*server.State, error) {
	held := cosi.WrapCore(namespaced.NewState(inmem.Build))
	template := m.template
	add := func(i int, name, version string) error {
		extension := runtime.NewExtensionStatus(runtime.NamespaceName, fmt.Sprint(i))
		extension.TypedSpec().Image = fmt.Sprintf("%d.sqsh", i)
		extension.TypedSpec().Metadata = extensions.Metadata{Name: name, Version: version}
		return held.Create(ctx, extension)
	}
	for i, extension := range template.Extensions {
		if err := add(i, extension[strings.LastIndex(extension, "/")+1:], template.Talos); err != nil {
			return nil, err
		}
	}
	if template.Schematic != "" {
		if err := add(len(template.Extensions), "schematic", template.Schematic); err != nil {
			return nil, err
		}
	}
	m.fleet.mu.Lock()
	phase := block.VolumePhaseMissing
	if m.fleet.state.disk(m.vm.ID).Template != nil {
		phase = block.VolumePhaseReady
	}
	m.fleet.mu.Unlock()
	// It is told to an administrator alone, since it holds secrets (AccessPolicy in internal/app/resources/resources.go of Talos 1.13).
	roles, _ := ctx.Value(rolesKey{}).(role.Set)
	if conf := m.settings(); conf != nil && roles.Includes(role.Admin) {
		if err := held.Create(ctx, configres.NewMachineConfig(conf.provider)); err != nil {
			return nil, err
		}
	}
	// Whoever may read anything is told, in maintenance mode, too (SystemInfoController,
	// internal/app/machined/pkg/controllers/hardware/system.go).
	if m.vm.UUID != "" {
		information := hardware.NewSystemInformation(hardware.SystemInformationID)
		information.TypedSpec().UUID = m.vm.UUID
		if err := held.Create(ctx, information); err != nil {
			return nil, err
		}
	}
	meta := block.NewVolumeStatus(block.NamespaceName, constants.MetaPartitionLabel)
	meta.TypedSpec().Phase = phase
	if err := held.Create(ctx, meta); err != nil {
		return nil, err
	}
	return server.NewState(held), nil
}
