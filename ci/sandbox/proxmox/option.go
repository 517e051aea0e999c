package proxmox

import (
	"crypto/rand"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
	if err != nil || index >= numbered[match[1]].times {
		return "", 0, false
	}
	return match[1], index, true
}

func optionExists(name string) bool {
	_, exists := configuration[name]
	return exists
}

func isDrive(name string) bool {
	prefix, _, exists := family(name)
	return exists && slices.Contains(drives, prefix)
}

// typed is a configuration's value as the API returns it: a number for an integer and a boolean, and a text for the others, also for "memory",
// which is a property string.
func typed(name, value string) any {
	if kind := configuration[name].kind; kind != integer && kind != boolean {
		return value
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n
	}
	return value
}

// normal is the value of an option that is no drive as the configuration file holds it.
func normal(name, value string) string {
	switch name {
	case "memory":
		return property(value, "current")
	case "tags":
		return normalTags(value)
	}
	if prefix, _, _ := family(name); prefix == "net" {
		return normalNet(value)
	}
	return strings.TrimRight(value, ",")
}

// normalTags sorts tags and writes them in small letters, as a host does whose tag style is not configured.
func normalTags(value string) string {
	tags := splitTags(strings.ToLower(value))
	slices.Sort(tags)
	return strings.Join(slices.Compact(tags), ";")
}

func splitTags(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ';' || r == ',' || r == ' ' || r == 0 })
}

// normalNet writes a network device as "model=MAC,…" and makes up an address where there is none.
func normalNet(value string) string {
	read, _ := netParts().read(value) // its mistakes were told before
	model, mac := read["model"], read["macaddr"]
	if mac == "" {
		mac = newMAC()
	}
	parts := []string{model + "=" + strings.ToUpper(mac)}
	for _, key := range slices.Sorted(maps.Keys(read)) {
		if key != "model" && key != "macaddr" {
			parts = append(parts, key+"="+read[key])
		}
	}
	return strings.Join(parts, ",")
}

// newMAC is a random address with the prefix that is Proxmox's.
func newMAC() string {
	var tail [3]byte
	_, _ = rand.Read(tail[:]) // never fails
	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", tail[0], tail[1], tail[2])
}

// newUUID is a random one (RFC 9562, version 4).
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// known gives a VM another UUID: one that is cloned always, one that is made where nobody gave it any (clone_vm and
// create_vm of qemu-server, src/PVE/API2/Qemu.pm).
func known(config map[string]string, uuid string) {
	parts := []string{"uuid=" + uuid}
	for _, part := range strings.Split(config[smbios], ",") {
		if part != "" && !strings.HasPrefix(part, "uuid=") {
			parts = append(parts, part)
		}
	}
	config[smbios] = strings.Join(parts, ",")
}

const smbios = "smbios1"

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
