package proxmox

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sizes of the volumes that are not asked for by size.
const (
	cloudInitBytes = 4 << 20
	efiBytes       = 4 << 20
)

// drive is an ide, sata, scsi, virtio, efidisk or tpmstate option in its parts.
type drive struct {
	file    string   // volume id, "none", "cdrom" or a request such as local-lvm:40
	options []string // key=value without the size
}

// parseDrive reads an option; an empty part, as clients send at the end, means nothing.
func parseDrive(value string) drive {
	var d drive
	for _, part := range strings.Split(value, ",") {
		key, item, pair := strings.Cut(part, "=")
		switch {
		case part == "", key == "size" && pair:
		case !pair:
			d.file = part
		case key == "file" || key == "volume":
			d.file = item
		default:
			d.options = append(d.options, part)
		}
	}
	return d
}

func (d drive) storage() string {
	storage, _, isVolume := strings.Cut(d.file, ":")
	if !isVolume {
		return ""
	}
	return storage
}

func (d drive) option(key string) string { return property(strings.Join(d.options, ","), key) }

func (d drive) isCloudInit(id int) bool {
	return strings.Contains(d.file, fmt.Sprintf("vm-%d-cloudinit", id))
}

// print is the option as the configuration holds it.
func (d drive) print(v *volume) string {
	parts := slices.Clone(d.options)
	slices.Sort(parts)
	if v != nil {
		parts = append(parts, "size="+formatSize(v.Bytes))
	}
	return strings.Join(append([]string{d.file}, parts...), ",")
}

// formatSize is a size with the largest unit that it has a whole number of.
func formatSize(bytes int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "T"}, {1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

var sizePattern = regexp.MustCompile(`^(\+?)([0-9]+(?:\.[0-9]+)?)([KMGT]?)$`)

// parseSize reads "40G", "+10G" or a number of bytes.
func parseSize(value string) (bytes int64, more, ok bool) {
	match := sizePattern.FindStringSubmatch(value)
	if match == nil {
		return 0, false, false
	}
	amount, err := strconv.ParseFloat(match[2], 64)
	if err != nil {
		return 0, false, false
	}
	shift := strings.Index("KMGT", match[3])*10 + 10
	if match[3] == "" {
		shift = 0
	}
	return int64(math.Ceil(amount * float64(int64(1)<<shift))), match[1] != "", true
}

// volumeName is the name of a new volume as its kind of storage writes it, and its format.
func (s *Server) volumeName(storage Storage, owner int, name string) (id, format string) {
	if storage.Type == "dir" {
		format = "qcow2"
		return fmt.Sprintf("%s:%d/%s.%s", storage.ID, owner, name, format), format
	}
	return storage.ID + ":" + name, "raw"
}

// newVolume adds a disk with the first free number; s.mu is held.
func (s *Server) newVolume(storage Storage, owner int, bytes int64) string {
	return s.newVolumeIn(s.state.Volumes, storage, owner, bytes)
}

func (s *Server) newVolumeIn(volumes map[string]*volume, storage Storage, owner int, bytes int64) string {
	for n := 0; ; n++ {
		taken := false
		for id := range volumes {
			_, name, _ := strings.Cut(id, ":")
			name = name[strings.LastIndex(name, "/")+1:]
			base, _, _ := strings.Cut(name, ".")
			taken = taken || base == fmt.Sprintf("vm-%d-disk-%d", owner, n) || base == fmt.Sprintf("base-%d-disk-%d", owner, n)
		}
		if !taken {
			id, format := s.volumeName(storage, owner, fmt.Sprintf("vm-%d-disk-%d", owner, n))
			volumes[id] = &volume{Owner: owner, Bytes: bytes, Format: format}
			return id
		}
	}
}

// newCloudInit adds a cloud-init drive, of which a VM has one: its name has no number, so that one that was left behind is in the way.
func (s *Server) newCloudInit(volumes map[string]*volume, storage Storage, owner int) (id string, err error) {
	id, _ = s.volumeName(storage, owner, fmt.Sprintf("vm-%d-cloudinit", owner))
	if _, exists := volumes[id]; exists {
		return "", internal("lvcreate 'pve/vm-%d-cloudinit' error:   Logical Volume \"vm-%d-cloudinit\" already exists in volume group \"pve\"", owner, owner)
	}
	volumes[id] = &volume{Owner: owner, Bytes: cloudInitBytes, Format: "raw"}
	return id, nil
}

func (s *Server) storage(id string) (Storage, error) {
	for _, storage := range s.storages {
		if storage.ID == id {
			return storage, nil
		}
	}
	return Storage{}, internal("storage '%s' does not exist", id)
}

// diskStorage is where a seeded disk goes that names no volume: the last storage that holds images.
func (s *Server) diskStorage() Storage {
	for _, storage := range slices.Backward(s.storages) {
		if strings.Contains(storage.Content, "images") {
			return storage
		}
	}
	return s.storages[0]
}

// attach makes a drive's option ready for the configuration: volumes are made as it asks. It changes the given volumes
// only.
func (s *Server) attach(volumes map[string]*volume, g *guest, name, value string) (string, error) {
	d := parseDrive(value)
	if d.option("import-from") != "" {
		return "", invalid(map[string]string{name: "import-from: this host has no images to import"})
	}
	if d.file == "none" || d.file == "cdrom" {
		return d.print(nil), nil
	}
	storageID, rest, isVolume := strings.Cut(d.file, ":")
	if !isVolume { // a path: only root@pam may name one (check_volume_access of pve-storage 8.3.6)
		return "", internal("Only root can pass arbitrary filesystem paths.")
	}
	storage, err := s.storage(storageID)
	if err != nil {
		return "", err
	}
	if rest == "cloudinit" {
		if d.file, err = s.newCloudInit(volumes, storage, g.ID); err != nil {
			return "", err
		}
		return d.print(volumes[d.file]), nil
	}
	if gib, err := strconv.ParseFloat(rest, 64); err == nil {
		bytes := int64(gib * (1 << 30))
		if prefix, _, _ := family(name); prefix == "efidisk" || prefix == "tpmstate" {
			bytes = efiBytes
		}
		d.options = slices.DeleteFunc(d.options, func(option string) bool { return strings.HasPrefix(option, "format=") })
		d.file = s.newVolumeIn(volumes, storage, g.ID, bytes)
		return d.print(volumes[d.file]), nil
	}
	if strings.HasPrefix(rest, "iso/") {
		return d.print(nil), nil
	}
	known, exists := volumes[d.file]
	if !exists {
		return "", internal("volume '%s' does not exist", d.file)
	}
	return d.print(known), nil
}

// detach takes a drive away: a cloud-init drive is removed, a disk becomes unused. It changes the given maps only.
func detach(volumes map[string]*volume, config map[string]string, id int, name string) {
	d := parseDrive(config[name])
	delete(config, name)
	if _, exists := volumes[d.file]; !exists {
		return
	}
	if d.isCloudInit(id) || strings.HasPrefix(name, "unused") {
		delete(volumes, d.file)
		return
	}
	for n := range numbered["unused"].times {
		unused := "unused" + strconv.Itoa(n)
		if _, taken := config[unused]; !taken {
			config[unused] = d.file
			return
		}
	}
}

// driveNames are a configuration's drives in the order of their names and numbers.
func driveNames(config map[string]string) []string {
	var names []string
	for name := range config {
		if isDrive(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		familyA, indexA, _ := family(a)
		familyB, indexB, _ := family(b)
		if familyA != familyB {
			return strings.Compare(familyA, familyB)
		}
		return indexA - indexB
	})
	return names
}
