package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	blockres "github.com/siderolabs/talos/pkg/machinery/resources/block"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
)

// leastVolume is what a volume of a further disk takes at least; it grows to the whole disk.
const leastVolume = "1GiB"

// disk is a disk by its place on Proxmox's SCSI bus, which terragrunt/modules/platform-proxmox gives it. The letters of /dev/sdX follow the
// order in which the kernel finds the disks, which is another one at times; udev's link names the drive as QEMU calls it.
func disk(at int) string {
	return fmt.Sprintf("/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi%d", at)
}

// volumes are the settings of the node's disks: EPHEMERAL's encryption, and the volumes of further disks, encrypted like it.
func volumes(c *clusterconfig.Cluster, node clusterconfig.Node) ([]config.Document, error) {
	encryption, err := encryption(c)
	if err != nil {
		return nil, err
	}
	var documents []config.Document
	if !encryption.IsZero() {
		ephemeral := block.NewVolumeConfigV1Alpha1()
		ephemeral.MetaName = constants.EphemeralPartitionLabel
		ephemeral.EncryptionSpec = encryption
		documents = append(documents, ephemeral)
	}
	for i, described := range node.Disks {
		if i == 0 || described.Volume == "" {
			continue
		}
		selector, err := cel.ParseBooleanExpression(fmt.Sprintf("%q in disk.symlinks", disk(i)), celenv.DiskLocator())
		if err != nil {
			return nil, fmt.Errorf("rule for the disk of the volume %s: %w", described.Volume, err)
		}
		grow := true
		volume := block.NewUserVolumeConfigV1Alpha1()
		volume.MetaName = described.Volume
		volume.ProvisioningSpec = block.ProvisioningSpec{
			DiskSelectorSpec: block.DiskSelector{Match: selector}, ProvisioningGrow: &grow, ProvisioningMinSize: block.MustByteSize(leastVolume),
		}
		volume.EncryptionSpec = encryption
		documents = append(documents, volume)
	}
	return documents, nil
}

// encryption is that of what is not Talos's own on the disks; the zero value where the description wants none.
func encryption(c *clusterconfig.Cluster) (block.EncryptionSpec, error) {
	switch c.Talos.DiskEncryption.Ephemeral {
	case clusterconfig.EncryptionNodeID, "":
		return block.EncryptionSpec{
			EncryptionProvider: blockres.EncryptionProviderLUKS2,
			EncryptionKeys:     []block.EncryptionKey{{KeySlot: 0, KeyNodeID: &block.EncryptionKeyNodeID{}}},
		}, nil
	case clusterconfig.EncryptionNone:
		return block.EncryptionSpec{}, nil
	default:
		return block.EncryptionSpec{}, fmt.Errorf("disk encryption %q: there are %q and %q", c.Talos.DiskEncryption.Ephemeral, clusterconfig.EncryptionNodeID, clusterconfig.EncryptionNone)
	}
}
