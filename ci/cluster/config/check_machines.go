package config

import (
	"fmt"
	"strings"
)

// machines checks what is described of machines that are there already.
func (k *checker) machines() {
	cards, shown := map[string]int{}, map[string]int{}
	for i, n := range k.c.Nodes {
		at := func(field string) string { return fmt.Sprintf("nodes[%d].%s", i, field) }
		k.form(at("installDisk"), n.InstallDisk, "a disk, such as /dev/nvme0n1")
		k.form(at("mac"), n.MAC, "the hardware address of a network card, such as 52:54:00:12:34:56")
		k.form(at("fingerprint"), n.Fingerprint,
			"the fingerprint of a certificate as the machine's console prints it, 44 characters that end in =")
		if first, twice := shown[n.Fingerprint]; twice && k.Has(at("fingerprint")) {
			k.Mistake(at("fingerprint"), "%s is the fingerprint of %s already; each machine has its own",
				n.Fingerprint, nodeLabel(first, k.c.Nodes[first]))
		}
		shown[n.Fingerprint] = i
		if !k.Has(at("mac")) {
			continue
		}
		card := strings.ToLower(n.MAC)
		if first, twice := cards[card]; twice {
			k.Mistake(at("mac"), "%s is the network card of %s already; each machine has its own", n.MAC, nodeLabel(first, k.c.Nodes[first]))
		} else {
			cards[card] = i
		}
	}
}
