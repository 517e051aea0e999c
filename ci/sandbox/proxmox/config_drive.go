package proxmox

// What a drive's option may say: PVE/QemuServer/Drive.pm of qemu-server 8.3.13, in the form that may ask for a new volume.

var (
	driveVolume = prop{alias: "file"}
	driveFile   = prop{required: true, bare: true, format: formatVolume}
	driveFormat = prop{enum: words("raw qcow qed qcow2 vmdk cloop")}
	driveSize   = prop{format: formatDiskSize}
	driveImport = prop{format: formatImport}

	driveModel    = schema{"model": {format: formatURLEncoded, longest: 120}}
	driveSSD      = schema{"ssd": {kind: boolean}}
	driveWWN      = schema{"wwn": {pattern: whole(`0x[0-9a-fA-F]{16}`)}}
	driveThread   = schema{"iothread": {kind: boolean}}
	driveReadOnly = schema{"ro": {kind: boolean}}
	driveSCSI     = schema{
		"product": {pattern: whole(`[A-Za-z0-9\-_\s]{0,16}`)}, "vendor": {pattern: whole(`[A-Za-z0-9\-_\s]{0,8}`)},
		"queues": {kind: integer, least: at(2)}, "scsiblock": {kind: boolean},
	}
)

// drive0 is what all kinds of disks have in common.
var drive0 = driveLimits().with(schema{
	"volume": driveVolume, "file": driveFile, "format": driveFormat, "size": driveSize, "import-from": driveImport,
	"media": {enum: words("cdrom disk")}, "cyls": {kind: integer}, "heads": {kind: integer}, "secs": {kind: integer},
	"trans":    {enum: words("none lba auto")},
	"snapshot": {kind: boolean}, "cache": {enum: words("none writethrough writeback unsafe directsync")},
	"backup": {kind: boolean}, "replicate": {kind: boolean},
	"rerror": {enum: words("ignore report stop")}, "werror": {enum: words("enospc ignore report stop")}, "aio": {enum: words("native threads io_uring")},
	"discard": {enum: words("ignore on")}, "detect_zeroes": {kind: boolean}, "serial": {format: formatURLEncoded, longest: 60},
	"shared": {kind: boolean},
})

// driveLimits are how much and how fast a drive may read and write.
func driveLimits() schema {
	limits := schema{}
	for _, way := range []string{"", "_rd", "_wr"} {
		for _, unit := range []string{"bps", "iops"} {
			limits[unit+way], limits[unit+way+"_max_length"] = prop{kind: integer}, prop{kind: integer, least: at(1)}
			if way != "" {
				limits[unit+way+"_length"] = prop{alias: unit + way + "_max_length"}
			}
		}
		limits["mbps"+way], limits["mbps"+way+"_max"], limits["iops"+way+"_max"] = prop{kind: decimal}, prop{kind: decimal}, prop{kind: integer}
	}
	return limits
}
