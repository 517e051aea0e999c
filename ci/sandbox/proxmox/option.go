package proxmox

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is an option's type in the schema; the API returns numbers for integers and booleans and texts for the others,
// also for "memory", which is a property string.
type kind int

const (
	text kind = iota
	integer
	boolean
)

// options are those of a VM's configuration that have no number in their names.
var options = map[string]kind{
	"balloon": integer, "cores": integer, "cpuunits": integer, "shares": integer, "sockets": integer, "vcpus": integer,
	"acpi": boolean, "autostart": boolean, "ciupgrade": boolean, "freeze": boolean, "keephugepages": boolean, "kvm": boolean,
	"localtime": boolean, "numa": boolean, "onboot": boolean, "protection": boolean, "reboot": boolean, "tablet": boolean,
	"tdf": boolean, "template": boolean,
	"affinity": text, "agent": text, "amd-sev": text, "arch": text, "args": text, "bios": text, "boot": text, "bootdisk": text,
	"cdrom": text, "cicustom": text, "cipassword": text, "citype": text, "ciuser": text, "cpu": text, "cpulimit": text,
	"description": text, "hookscript": text, "hotplug": text, "hugepages": text, "ivshmem": text, "keyboard": text,
	"machine": text, "memory": text, "meta": text, "migrate_downtime": text, "name": text, "nameserver": text, "ostype": text,
	"scsihw": text, "searchdomain": text, "smbios1": text, "spice_enhancements": text, "sshkeys": text, "startdate": text,
	"startup": text, "tags": text, "vga": text, "vmgenid": text, "vmstatestorage": text, "watchdog": text,
}

// numbered are the options that exist several times, and how often.
var numbered = map[string]int{
	"audio": 1, "efidisk": 1, "hostpci": 16, "ide": 4, "ipconfig": 32, "net": 32, "numa": 8, "parallel": 3, "rng": 1, "sata": 6,
	"scsi": 31, "serial": 4, "tpmstate": 1, "unused": 256, "usb": 14, "virtio": 16, "virtiofs": 10,
}

// drives are the numbered options that name a volume.
var drives = []string{"efidisk", "ide", "sata", "scsi", "tpmstate", "virtio"}

var numberedName = regexp.MustCompile(`^([a-z]+)(0|[1-9][0-9]*)$`)

// family splits the name of a numbered option that exists: net0 is net and 0.
func family(name string) (prefix string, index int, exists bool) {
	match := numberedName.FindStringSubmatch(name)
	if match == nil {
		return "", 0, false
	}
	index, err := strconv.Atoi(match[2])
	if err != nil || index >= numbered[match[1]] {
		return "", 0, false
	}
	return match[1], index, true
}

func optionExists(name string) bool {
	if _, plain := options[name]; plain {
		return true
	}
	_, _, exists := family(name)
	return exists
}

func isDrive(name string) bool {
	prefix, _, exists := family(name)
	return exists && slices.Contains(drives, prefix)
}

// typed is a configuration's value as the API returns it.
func typed(name, value string) any {
	if options[name] == text {
		return value
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n
	}
	return value
}

var (
	tagPattern  = regexp.MustCompile(`(?i)^[a-z0-9_][a-z0-9_\-+.]*$`)
	namePattern = regexp.MustCompile(`(?i)^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	macPattern  = regexp.MustCompile(`(?i)^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)
)

// normal checks a value that is no drive and returns it as the configuration file holds it; mistake says what the schema
// refuses.
func normal(name, value string) (result, mistake string) {
	switch options[name] {
	case integer:
		n, err := strconv.Atoi(value)
		least := 0
		if slices.Contains([]string{"cores", "sockets", "vcpus", "cpuunits"}, name) {
			least = 1
		}
		switch {
		case err != nil:
			return "", fmt.Sprintf("type check ('integer') failed - got '%s'", value)
		case n < least:
			return "", fmt.Sprintf("value must have a minimum value of %d", least)
		}
		return value, ""
	case boolean:
		if !slices.Contains([]string{"0", "1", "no", "yes", "off", "on", "false", "true"}, strings.ToLower(value)) {
			return "", fmt.Sprintf("type check ('boolean') failed - got '%s'", value)
		}
		return flag(isTrue(value)), ""
	}
	switch name {
	case "name":
		if !namePattern.MatchString(value) {
			return "", "invalid format - value does not look like a valid DNS name"
		}
	case "memory":
		current := property(value, "current")
		if n, err := strconv.Atoi(current); err != nil || n < 16 {
			return "", "invalid format - format error current: value must have a minimum value of 16"
		}
		return current, ""
	case "tags":
		return normalTags(value)
	}
	switch prefix, _, _ := family(name); prefix {
	case "net":
		return normalNet(value)
	case "ipconfig":
		return value, checkIPConfig(value)
	}
	return strings.TrimRight(value, ","), ""
}

// normalTags sorts tags and writes them in small letters, as a host does whose tag style is not configured.
func normalTags(value string) (result, mistake string) {
	tags := splitTags(value)
	for i, tag := range tags {
		if !tagPattern.MatchString(tag) {
			return "", "invalid format - invalid characters in tag"
		}
		tags[i] = strings.ToLower(tag)
	}
	slices.Sort(tags)
	return strings.Join(slices.Compact(tags), ";"), ""
}

func splitTags(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ';' || r == ',' || r == ' ' || r == 0 })
}

// normalNet writes a network device as "model=MAC,…" and makes up an address where there is none.
func normalNet(value string) (result, mistake string) {
	var model, mac string
	var rest []string
	for _, part := range strings.Split(value, ",") {
		key, item, pair := strings.Cut(part, "=")
		switch {
		case part == "":
		case key == "model":
			model = item
		case key == "macaddr":
			mac = item
		case !pair:
			model = key
		case slices.Contains([]string{"virtio", "e1000", "e1000e", "rtl8139", "vmxnet3"}, key):
			model, mac = key, item
		default:
			rest = append(rest, part)
		}
	}
	if model == "" {
		return "", "invalid format - format error net.model: property is missing and it is not optional"
	}
	if mac == "" {
		mac = newMAC()
	}
	if !macPattern.MatchString(mac) {
		return "", "invalid format - format error net.macaddr: invalid format - value does not look like a valid unicast MAC address"
	}
	// PVE::QemuServer::Network of qemu-server, the format pve-qm-net.
	if tag, tagged := keyed(value, "tag"); tagged {
		if n, err := strconv.Atoi(tag); err != nil || n < 1 || n > 4094 {
			return "", "invalid format - format error net.tag: value must have a minimum value of 1 and a maximum value of 4094"
		}
	}
	slices.Sort(rest)
	return strings.Join(append([]string{model + "=" + strings.ToUpper(mac)}, rest...), ","), ""
}

// newMAC is a random address with the prefix that is Proxmox's.
func newMAC() string {
	var tail [3]byte
	_, _ = rand.Read(tail[:]) // never fails
	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", tail[0], tail[1], tail[2])
}

func checkIPConfig(value string) (mistake string) {
	address, gateway := property(value, "ip"), property(value, "gw")
	if _, err := netip.ParsePrefix(address); err != nil && address != "" && address != "dhcp" {
		return "invalid format - format error ip: invalid format - value does not look like a valid ipv4 network configuration"
	}
	if gateway != "" {
		if _, err := netip.ParseAddr(gateway); err != nil {
			return "invalid format - format error gw: invalid format - value does not look like a valid ipv4 address"
		}
		if address == "" {
			return "invalid format - gateway specified without ip"
		}
	}
	return ""
}

// keyed is the value of a key in "key=value,…", if it is there.
func keyed(value, key string) (item string, is bool) {
	for _, part := range strings.Split(value, ",") {
		if name, item, pair := strings.Cut(part, "="); pair && name == key {
			return item, true
		}
	}
	return "", false
}

// property is one value of "key=value,…"; the part without a key belongs to the given one where that has no other.
func property(value, key string) string {
	bare := ""
	for _, part := range strings.Split(value, ",") {
		name, item, pair := strings.Cut(part, "=")
		if pair && name == key {
			return item
		}
		if !pair && bare == "" {
			bare = name
		}
	}
	return bare
}
