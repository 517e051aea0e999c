package proxmox

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// configPrivileges are those of which a change of a VM's configuration needs one at least, before it is looked at more closely.
var configPrivileges = []string{"VM.Config.Disk", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.HWType",
	"VM.Config.Options", "VM.Config.Cloudinit"}

// optionPrivileges is check_vm_modify_config_perm of qemu-server 9.2, src/PVE/API2/Qemu.pm. What is in no list only root@pam may set; drives,
// tags and devices are judged elsewhere.
var optionPrivileges = map[string]string{
	"cores": "CPU", "cpu": "CPU", "cpulimit": "CPU", "cpuunits": "CPU", "numa": "CPU", "sockets": "CPU", "vcpus": "CPU",
	"memory": "Memory", "balloon": "Memory", "shares": "Memory",
	"acpi": "HWType", "hotplug": "HWType", "kvm": "HWType", "machine": "HWType", "scsihw": "HWType", "smbios1": "HWType", "tablet": "HWType",
	"vga": "HWType", "watchdog": "HWType",
	"agent": "Options", "autostart": "Options", "bios": "Options", "description": "Options", "keyboard": "Options", "localtime": "Options",
	"migrate_downtime": "Options", "name": "Options", "onboot": "Options", "ostype": "Options", "protection": "Options", "reboot": "Options",
	"startdate": "Options", "startup": "Options", "tdf": "Options", "template": "Options", "tags": "Options",
	"boot": "Disk", "bootdisk": "Disk", "vmstatestorage": "Disk",
	"cicustom": "Cloudinit", "cipassword": "Cloudinit", "citype": "Cloudinit", "ciuser": "Cloudinit", "ciupgrade": "Cloudinit", "nameserver": "Cloudinit",
	"searchdomain": "Cloudinit", "sshkeys": "Cloudinit",
}

// numberedPrivileges are those of options that exist several times.
var numberedPrivileges = map[string]string{"numa": "CPU", "audio": "HWType", "rng": "HWType", "serial": "HWType", "net": "Network", "ipconfig": "Cloudinit"}

// devices are judged by their values alone, so that one may be taken away that is not there. Of a device of the host's own root@pam decides.
var devices = []string{"serial", "usb", "hostpci", "virtiofs", "unused"}

func vmPath(id int) string { return "/vms/" + strconv.Itoa(id) }

// mayChange judges a change of a VM's configuration; before is what it was.
func (s *Server) mayChange(id int, before map[string]string, params url.Values) error {
	for _, name := range splitTags(params.Get("delete")) {
		if err := s.maySet(id, name, before[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !optionExists(name) {
			continue
		}
		if err := s.maySet(id, name, params.Get(name)); err != nil {
			return err
		}
		if before[name] != "" && isDrive(name) {
			if err := s.maySet(id, name, before[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// maySet judges one option.
func (s *Server) maySet(id int, name, value string) error {
	if isDrive(name) {
		return s.mayAttach(id, value)
	}
	prefix, _, _ := family(name)
	switch of := optionPrivileges[name] + numberedPrivileges[prefix]; {
	case slices.Contains(devices, prefix) && value == "":
		return nil
	case prefix == "serial" && value != "socket":
		return internal("only root can set '%s' config for real devices", name)
	case name == "startup":
		if err := s.acl.check(vmPath(id), "VM.Config.Options"); err != nil {
			return err
		}
		return s.acl.check("/", "Sys.Modify")
	case name == "freeze":
		return s.acl.check(vmPath(id), "VM.PowerMgmt")
	case of == "Cloudinit":
		return s.acl.checkAny(vmPath(id), "VM.Config.Cloudinit", "VM.Config.Network")
	case prefix == "net":
		if err := s.acl.check(vmPath(id), "VM.Config.Network"); err != nil {
			return err
		}
		return s.mayBridge(value)
	case prefix == "unused":
		return s.acl.check(vmPath(id), "VM.Config.Disk")
	case of == "":
		return internal("only root can set '%s' config", name)
	default:
		return s.acl.check(vmPath(id), "VM.Config."+of)
	}
}

// mayAttach is check_drive_perms, and check_storage_access for what has to be made.
func (s *Server) mayAttach(id int, value string) error {
	if value == "" {
		return nil
	}
	d := parseDrive(value)
	_, volume, _ := strings.Cut(d.file, ":")
	_, err := strconv.ParseFloat(volume, 64)
	isNew := err == nil
	switch {
	case volume == "cloudinit" || d.isCloudInit(id):
		return s.acl.check(vmPath(id), "VM.Config.Cloudinit", "VM.Config.CDROM")
	case d.file == "none" || d.file == "cdrom" || d.option("media") == "cdrom":
		return s.acl.check(vmPath(id), "VM.Config.CDROM")
	case isNew:
		if err := s.acl.check("/storage/"+d.storage(), "Datastore.AllocateSpace"); err != nil {
			return err
		}
	}
	return s.acl.check(vmPath(id), "VM.Config.Disk")
}

// mayBridge is PVE::GuestHelpers::check_vnet_access (pve-guest-common) for a bridge of the host's own.
func (s *Server) mayBridge(device string) error {
	bridge := property(device, "bridge")
	if bridge == "" || !strings.Contains(device, "bridge=") {
		return nil
	}
	path := "/sdn/zones/localnetwork/" + bridge
	if tag, tagged := keyed(device, "tag"); tagged {
		path += "/" + tag // each VLAN of a bridge has a path of its own
	}
	return s.acl.check(path, "SDN.Use")
}

// mayClone is what a clone asks for beyond the two VMs: the storage of each disk, and the bridges; s.mu is held.
func (s *Server) mayClone(c cloning) error {
	for _, disk := range s.disks(c.source) {
		if err := s.acl.check("/storage/"+cmp.Or(c.storage, parseDrive(disk.Volume).storage()), "Datastore.AllocateSpace"); err != nil {
			return err
		}
	}
	for name, value := range c.source.Config {
		if prefix, _, _ := family(name); prefix != "net" {
			continue
		}
		if err := s.mayBridge(value); err != nil {
			return err
		}
	}
	return nil
}
