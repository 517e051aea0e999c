package config

import (
	"fmt"
	"strings"
)

// userVolumes is where Talos mounts the volumes of further disks.
const userVolumes = "/var/mnt/"

// volumes checks the volumes that a node's further disks are made.
func (k *checker) volumes(i int, n Node) {
	first := map[string]int{}
	for j, d := range n.Disks {
		path := fmt.Sprintf("nodes[%d].disks[%d].volume", i, j)
		if !k.Has(path) {
			continue
		}
		earlier, twice := first[d.Volume]
		switch {
		case j == 0:
			k.Mistake(path, "the first disk is Talos's own; write the volume at a further one")
		case !volumeName.MatchString(d.Volume):
			k.Mistake(path, "%q is not the name of a volume: write 1 to 34 lower-case letters, digits and inner hyphens", d.Volume)
		case twice:
			k.Mistake(path, "%s is disks[%d] already; give each disk a volume of its own", d.Volume, earlier)
		default:
			first[d.Volume] = j
		}
	}
}

// dataVolume is the volume that Longhorn's folder is on; "" where it is on Talos's own disk.
func (s Storage) dataVolume() string {
	below, is := strings.CutPrefix(s.DataPath, userVolumes)
	if !is {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}

// dataDisks checks that the volume is there on each node that keeps data: on others it would go to Talos's own disk unseen.
func (k *checker) dataDisks() {
	volume := k.c.Storage.dataVolume()
	if !k.Has("storage.dataPath") || volume == "" || !k.rolesKnown() {
		return
	}
	for i, n := range k.c.Nodes {
		at := fmt.Sprintf("nodes[%d].disks", i)
		if !k.c.TakesPods(n) || !k.Has(at) {
			continue
		}
		has := false
		for _, d := range n.Disks[min(1, len(n.Disks)):] {
			has = has || d.Volume == volume
		}
		if !has {
			k.Mistake(at, "has no disk with the volume %s, which storage.dataPath (%s) is on; add {size: 100, volume: %[1]s}", volume, k.c.Storage.DataPath)
		}
	}
}
