package proxmox

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Formats by the names that they have in pve-common 8.3.1 (src/PVE/JSONSchema.pm), qemu-server 8.3.13 (PVE/QemuServer.pm and what is below)
// and pve-storage 8.3.6 (src/PVE/Storage/Plugin.pm), with their wording.

// matching is a format of one pattern. message may have the value in it.
func matching(pattern, message string) format {
	compiled := whole(pattern)
	return func(_, value string) string {
		if compiled.MatchString(value) {
			return ""
		}
		if strings.Contains(message, "%s") {
			return fmt.Sprintf(message, value) + "\n"
		}
		return message + "\n"
	}
}

const dnsLabel = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`

var (
	formatVMID       = matching(`[1-9][0-9]{2,8}`, "value does not look like a valid VM ID")
	formatNode       = matching(dnsLabel, "value does not look like a valid node name")
	formatConfigID   = matching(`(?i:[a-z][a-z0-9_-]+)`, "invalid configuration ID '%s'")
	formatStorageID  = matching(`(?i:[a-z][a-z0-9\-_.]*[a-z0-9])`, "storage ID '%s' contains illegal characters")
	formatBridgeID   = matching(`[-_.\w\d]+`, "invalid bridge ID '%s'")
	formatDNSName    = matching(`(?:`+dnsLabel+`\.)*`+dnsLabel, "value does not look like a valid DNS name")
	formatMAC        = matching(`(?i:[a-f0-9][02468ace](?::[a-f0-9]{2}){5})`, "value does not look like a valid unicast MAC address")
	formatURLEncoded = matching(`[-%a-zA-Z0-9_.!~*'()]*`, "invalid urlencoded string: %s")
	formatTag        = matching(`(?i:[a-z0-9_][a-z0-9_\-+.]*)`, "invalid characters in tag")
	formatPool       = matching(`[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}`, "pool name '%s' contains invalid characters")
	formatDiskSize   = matching(`\d+(?:\.\d+)?[KMGT]?`, "value does not look like a valid disk size: %s")
	formatTaskStatus = matching(`(?i:ok|error|warning|unknown)`, "invalid status '%s'")
	formatContent    = matching(`images|rootdir|vztmpl|iso|backup|snippets|import|none`, "invalid content type '%s'")
	formatVolumeID   = matching(volumeID, "unable to parse volume ID '%s'")
	formatVolume     = matching(`none|cdrom|/.*|`+volumeID, "unable to parse volume ID '%s'")
	formatImport     = matching(`/.*|`+volumeID, "unable to parse volume ID '%s'")
	formatHotplug    = matching(`[01]|(?:network|disk|cpu|memory|usb|cloudinit)(?:[,; ](?:network|disk|cpu|memory|usb|cloudinit))*`, "unable to parse hotplug option")
	formatStartup    = matching(`(?:(?:(?:order=)?\d+|up=\d+|down=\d+|\s*)(?:,|$))+`, "unable to parse startup options")
	formatPhysBits   = matching(`host|[89]|[1-5]\d|6[0-4]`, "value must be an integer between 8 and 64 or 'host'")
)

const volumeID = `(?i:[a-z][a-z0-9\-_.]*[a-z0-9]:.+)`

// address takes what is an address, and where bits are given, with a length of the prefix between them.
func address(is func(netip.Addr) bool, words []string, least, most int, message string) format {
	return func(_, value string) string {
		for _, word := range words {
			if value == word {
				return ""
			}
		}
		literal, bits, prefix := strings.Cut(value, "/")
		parsed, err := netip.ParseAddr(literal)
		fits := err == nil && parsed.Zone() == "" && is(parsed) && prefix == (most > 0)
		if fits && prefix {
			n, err := strconv.Atoi(bits)
			fits = err == nil && n >= least && n <= most
		}
		if !fits {
			return message + "\n"
		}
		return ""
	}
}

var (
	formatIPv4       = address(netip.Addr.Is4, nil, 0, 0, "value does not look like a valid IPv4 address")
	formatIPv6       = address(netip.Addr.Is6, nil, 0, 0, "value does not look like a valid IPv6 address")
	formatIPv4Config = address(netip.Addr.Is4, []string{"dhcp", "manual"}, 8, 32, "value does not look like a valid ipv4 network configuration")
	formatIPv6Config = address(netip.Addr.Is6, []string{"auto", "dhcp", "manual"}, 8, 128, "value does not look like a valid ipv6 network configuration")
)

// formatCIDR is a network of either family.
func formatCIDR(path, value string) string {
	for _, of := range []format{address(netip.Addr.Is4, nil, 8, 32, "no"), address(netip.Addr.Is6, nil, 8, 128, "no")} {
		if of(path, value) == "" {
			return ""
		}
	}
	return "value does not look like a valid CIDR network\n"
}

// formatAddress is a name or an address.
func formatAddress(path, value string) string {
	if formatIPv4(path, value) == "" || formatIPv6(path, value) == "" || formatDNSName(path, value) == "" {
		return ""
	}
	return "value does not look like a valid address: " + value + "\n"
}

// formatStoragePair is a storage, or one storage and the one that stands for it.
func formatStoragePair(path, value string) string {
	if value == "1" {
		return ""
	}
	for _, id := range strings.SplitN(value, ":", 2) {
		if wrong := formatStorageID(path, id); wrong != "" {
			return fmt.Sprintf("entry '%s' contains invalid ID - %s\n\n", value, wrong)
		}
	}
	return ""
}

var cpuRange = regexp.MustCompile(`^\s*(\d+)(?:-(\d+))?\s*$`)

// formatCPUSet is a list of processors, such as 0,5,8-11.
func formatCPUSet(_, value string) string {
	for _, part := range strings.Split(value, ",") {
		match := cpuRange.FindStringSubmatch(part)
		if match == nil {
			return "unable to parse cpuset option\n"
		}
		from, _ := strconv.Atoi(match[1])
		if to, err := strconv.Atoi(match[2]); err == nil && to < from {
			return "unable to parse cpuset option\n"
		}
	}
	return ""
}

// formatBootDevice is a device that a VM can be told to boot from.
func formatBootDevice(_, value string) string {
	switch prefix, _, _ := family(value); prefix {
	case "ide", "sata", "scsi", "virtio", "net", "usb", "hostpci":
		return ""
	}
	return "invalid boot device '" + value + "'\n"
}
