package proxmox

// The options of a VM's configuration as calls may set them: $confdesc, $confdesc_cloudinit and json_config_properties of qemu-server 8.3.13,
// PVE/QemuServer.pm, and the formats beside it in PVE/QemuServer/.

// options are those that have no number in their names.
var options = schema{
	"acpi":     {kind: boolean},
	"affinity": {format: formatCPUSet},
	"agent": {format: propertyString(schema{
		"enabled": {kind: boolean, required: true, bare: true}, "fstrim_cloned_disks": {kind: boolean},
		"freeze-fs-on-backup": {kind: boolean}, "type": {enum: words("virtio isa")},
	})},
	"amd-sev": {format: propertyString(schema{
		"type": {required: true, bare: true, enum: words("std es snp")}, "no-debug": {kind: boolean},
		"no-key-sharing": {kind: boolean}, "allow-smt": {kind: boolean}, "kernel-hashes": {kind: boolean},
	})},
	"arch":      {enum: words("x86_64 aarch64")},
	"args":      {},
	"autostart": {kind: boolean},
	"balloon":   {kind: integer, least: at(0)},
	"bios":      {enum: words("seabios ovmf")},
	"boot": {format: propertyString(schema{
		"legacy": {bare: true, pattern: whole(`[acdn]{1,4}`)}, "order": {format: formatBootDevice, list: true},
	})},
	"bootdisk": {pattern: whole(`(?:ide|sata|scsi|virtio)\d+`)},
	"cdrom":    {format: propertyString(drive0.with(driveModel, driveSSD, driveWWN)), unplayed: true},
	"cicustom": {format: propertyString(schema{
		"meta": {format: formatVolumeID}, "network": {format: formatVolumeID}, "user": {format: formatVolumeID},
		"vendor": {format: formatVolumeID},
	})},
	"cipassword":  {},
	"citype":      {enum: words("configdrive2 nocloud opennebula")},
	"ciupgrade":   {kind: boolean},
	"ciuser":      {},
	"cores":       {kind: integer, least: at(1)},
	"cpu":         {format: propertyString(cpuParts, knownCPU)},
	"cpulimit":    {kind: decimal, least: at(0), most: at(128)},
	"cpuunits":    {kind: integer, least: at(1), most: at(262144)},
	"description": {longest: 8 << 10},
	"freeze":      {kind: boolean},
	"hookscript":  {format: formatVolumeID},
	"hotplug":     {format: formatHotplug},
	"hugepages":   {enum: words("any 2 1024")},
	"ivshmem": {format: propertyString(schema{
		"size": {kind: integer, required: true, least: at(1)}, "name": {pattern: whole(`[a-zA-Z0-9\-]+`)},
	})},
	"keephugepages":      {kind: boolean},
	"keyboard":           {enum: words("de de-ch da en-gb en-us es fi fr fr-be fr-ca fr-ch hu is it ja lt mk nl no pl pt pt-br sv sl tr")},
	"kvm":                {kind: boolean},
	"localtime":          {kind: boolean},
	"lock":               {enum: words("backup clone create migrate rollback snapshot snapshot-delete suspending suspended")},
	"machine":            machineProperty,
	"memory":             {format: propertyString(schema{"current": {kind: integer, required: true, bare: true, least: at(16)}})},
	"migrate_downtime":   {kind: decimal, least: at(0)},
	"migrate_speed":      {kind: integer, least: at(0)},
	"name":               {format: formatDNSName},
	"nameserver":         {format: formatAddress, list: true},
	"numa":               {kind: boolean},
	"onboot":             {kind: boolean},
	"ostype":             {enum: words("other wxp w2k w2k3 w2k8 wvista win7 win8 win10 win11 l24 l26 solaris")},
	"protection":         {kind: boolean},
	"reboot":             {kind: boolean},
	"scsihw":             {enum: words("lsi lsi53c810 virtio-scsi-pci virtio-scsi-single megasas pvscsi")},
	"searchdomain":       {},
	"shares":             {kind: integer, least: at(0), most: at(50000)},
	"smbios1":            {longest: 512, format: propertyString(smbiosParts)},
	"smp":                {kind: integer, least: at(1)},
	"sockets":            {kind: integer, least: at(1)},
	"spice_enhancements": {format: propertyString(schema{"foldersharing": {kind: boolean}, "videostreaming": {enum: words("off all filter")}})},
	"sshkeys":            {format: formatURLEncoded},
	"startdate":          {pattern: whole(`now|\d{4}-\d{1,2}-\d{1,2}(?:T\d{1,2}:\d{1,2}:\d{1,2})?`)},
	"startup":            {format: formatStartup},
	"tablet":             {kind: boolean},
	"tags":               {format: formatTag, list: true},
	"tdf":                {kind: boolean},
	"template":           {kind: boolean},
	"vcpus":              {kind: integer, least: at(1)},
	"vga": {format: propertyString(schema{
		"type":   {bare: true, enum: words("cirrus qxl qxl2 qxl3 qxl4 none serial0 serial1 serial2 serial3 std virtio virtio-gl vmware")},
		"memory": {kind: integer, least: at(4), most: at(512)}, "clipboard": {enum: words("vnc")},
	})},
	"vmgenid":        {pattern: whole(`[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01]`)},
	"vmstatestorage": {format: formatStorageID},
	"watchdog": {format: propertyString(schema{
		"model": {bare: true, enum: words("i6300esb ib700")}, "action": {enum: words("reset shutdown poweroff pause debug none")},
	})},
}

// numbered are the options that exist several times, and how often.
var numbered = map[string]struct {
	times int
	prop
}{
	"audio": {1, prop{format: propertyString(schema{
		"device": {required: true, enum: words("ich9-intel-hda intel-hda AC97")}, "driver": {enum: words("spice none")},
	})}},
	"efidisk": {1, prop{format: propertyString(schema{
		"volume": driveVolume, "file": driveFile, "format": driveFormat, "size": driveSize, "efitype": {enum: words("2m 4m")},
		"pre-enrolled-keys": {kind: boolean}, "import-from": driveImport,
	})}},
	"hostpci": {16, prop{format: propertyString(hostPCIParts)}},
	"ide":     {4, prop{format: propertyString(drive0.with(driveModel, driveSSD, driveWWN))}},
	"ipconfig": {32, prop{format: propertyString(schema{
		"ip": {format: formatIPv4Config}, "gw": {format: formatIPv4, needs: "ip"}, "ip6": {format: formatIPv6Config},
		"gw6": {format: formatIPv6, needs: "ip6"},
	})}},
	"net": {32, prop{format: propertyString(netParts())}},
	"numa": {8, prop{format: propertyString(schema{
		"cpus": {required: true, pattern: numberRanges}, "memory": {kind: decimal}, "hostnodes": {pattern: numberRanges},
		"policy": {enum: words("preferred bind interleave")},
	})}},
	"parallel": {3, prop{pattern: whole(`/dev/parport\d+|/dev/usb/lp\d+`)}},
	"rng": {1, prop{format: propertyString(schema{
		"source": {required: true, bare: true, enum: words("/dev/urandom /dev/random /dev/hwrng")}, "max_bytes": {kind: integer},
		"period": {kind: integer},
	})}},
	"sata":   {6, prop{format: propertyString(drive0.with(driveSSD, driveWWN))}},
	"scsi":   {31, prop{format: propertyString(drive0.with(driveThread, driveReadOnly, driveSSD, driveWWN, driveSCSI))}},
	"serial": {4, prop{pattern: whole(`/dev/.+|socket`)}},
	"tpmstate": {1, prop{format: propertyString(schema{
		"volume": driveVolume, "file": driveFile, "size": driveSize, "version": {enum: words("v1.2 v2.0")},
		"import-from": driveImport,
	})}},
	"unused": {256, prop{format: propertyString(schema{"volume": driveVolume, "file": {required: true, bare: true, format: formatVolumeID}})}},
	"usb": {14, prop{format: propertyString(schema{
		"host":    {bare: true, pattern: whole(`(?:0x)?[0-9A-Fa-f]{4}:(?:0x)?[0-9A-Fa-f]{4}|\d+-\d+(?:\.\d+)*|[Ss][Pp][Ii][Cc][Ee]`)},
		"mapping": {format: formatConfigID}, "usb3": {kind: boolean},
	})}},
	"virtio": {16, prop{format: propertyString(drive0.with(driveThread, driveReadOnly))}},
	"virtiofs": {10, prop{format: propertyString(schema{
		"dirid": {required: true, bare: true, format: formatConfigID}, "cache": {enum: words("auto always metadata never")},
		"direct-io": {kind: boolean}, "expose-xattr": {kind: boolean}, "expose-acl": {kind: boolean},
	})}},
}

var numberRanges = whole(`\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`)

// machineProperty is PVE/QemuServer/Machine.pm.
var machineProperty = prop{format: propertyString(schema{
	"type":      {bare: true, longest: 40, pattern: whole(`pc|pc(?:-i440fx)?-\d+(?:\.\d+)+(?:\+pve\d+)?(?:\.pxe)?|q35|pc-q35-\d+(?:\.\d+)+(?:\+pve\d+)?(?:\.pxe)?|virt(?:-\d+(?:\.\d+)+)?(?:\+pve\d+)?`)},
	"viommu":    {enum: words("intel virtio")},
	"enable-s3": {kind: boolean},
	"enable-s4": {kind: boolean},
})}

var base64Text = whole(`[A-Za-z0-9+/]+={0,2}`)

var smbiosParts = schema{
	"uuid":    {pattern: whole(`[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}`)},
	"version": {pattern: base64Text}, "serial": {pattern: base64Text}, "manufacturer": {pattern: base64Text}, "product": {pattern: base64Text},
	"sku": {pattern: base64Text}, "family": {pattern: base64Text}, "base64": {kind: boolean},
}

// hostPCIParts are PVE/QemuServer/PCI.pm.
var hostPCIParts = schema{
	"host":    {bare: true, pattern: whole(pciID + `(?:;` + pciID + `)*`)},
	"mapping": {format: formatConfigID}, "rombar": {kind: boolean}, "romfile": {pattern: whole(`[^,;]+`)},
	"pcie": {kind: boolean}, "x-vga": {kind: boolean},
	"legacy-igd": {kind: boolean}, "mdev": {pattern: whole(`[^/.:]+`)},
	"vendor-id": {pattern: pciNumber}, "device-id": {pattern: pciNumber}, "sub-vendor-id": {pattern: pciNumber}, "sub-device-id": {pattern: pciNumber},
}

const pciID = `(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?`

var pciNumber = whole(`0x[0-9a-fA-F]{4}`)

// netModels are the network cards there are: each is also the name of the address in "virtio=BC:24:11:…".
var netModels = words("e1000 e1000-82540em e1000-82544gc e1000-82545em e1000e i82551 i82557b i82559er ne2k_isa ne2k_pci pcnet rtl8139 virtio vmxnet3")

func netParts() schema {
	parts := schema{
		"macaddr": {format: formatMAC}, "model": {required: true, bare: true, enum: netModels}, "bridge": {format: formatBridgeID},
		"queues": {kind: integer, least: at(0), most: at(64)}, "rate": {kind: decimal, least: at(0)}, "tag": {kind: integer, least: at(1), most: at(4094)},
		"trunks": {pattern: numberRanges}, "firewall": {kind: boolean}, "link_down": {kind: boolean}, "mtu": {kind: integer, least: at(1), most: at(65520)},
	}
	for _, model := range netModels {
		parts[model] = prop{alias: "macaddr", aliasKey: "model"}
	}
	return parts
}
