package proxmox

import (
	"fmt"
	"slices"
	"strings"
)

// The option cpu: PVE/QemuServer/CPUConfig.pm of qemu-server 8.3.13.

var cpuParts = schema{
	"cputype": {bare: true}, "reported-model": {}, "hidden": {kind: boolean}, "hv-vendor-id": {pattern: whole(`[a-zA-Z0-9]{1,12}`)},
	"flags": {pattern: whole(`[+-][a-zA-Z0-9\-_.]+(?:;[+-][a-zA-Z0-9\-_.]+)*`)}, "phys-bits": {format: formatPhysBits},
}

// cpuTypes are those that Proxmox has by itself.
var cpuTypes = words(`486 pentium pentium2 pentium3 coreduo core2duo Conroe Penryn Nehalem Nehalem-IBRS Westmere Westmere-IBRS SandyBridge SandyBridge-IBRS
	IvyBridge IvyBridge-IBRS Haswell Haswell-IBRS Haswell-noTSX Haswell-noTSX-IBRS Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS
	Skylake-Client Skylake-Client-IBRS Skylake-Client-noTSX-IBRS Skylake-Client-v4 Skylake-Server Skylake-Server-IBRS Skylake-Server-noTSX-IBRS
	Skylake-Server-v4 Skylake-Server-v5 Cascadelake-Server Cascadelake-Server-v2 Cascadelake-Server-noTSX Cascadelake-Server-v4 Cascadelake-Server-v5
	Cooperlake Cooperlake-v2 KnightsMill Icelake-Client Icelake-Client-noTSX Icelake-Server Icelake-Server-noTSX Icelake-Server-v3 Icelake-Server-v4
	Icelake-Server-v5 Icelake-Server-v6 SapphireRapids SapphireRapids-v2 GraniteRapids athlon phenom Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4
	Opteron_G5 EPYC EPYC-IBPB EPYC-v3 EPYC-v4 EPYC-Rome EPYC-Rome-v2 EPYC-Rome-v3 EPYC-Rome-v4 EPYC-Milan EPYC-Milan-v2 EPYC-Genoa host kvm32 kvm64
	qemu32 qemu64 max x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4`)

// cpuFlags are those that a VM may set or take away.
var cpuFlags = words("pcid spec-ctrl ibpb ssbd virt-ssbd amd-ssbd amd-no-ssb pdpe1gb md-clear hv-tlbflush hv-evmcs aes")

// knownCPU is validate_vm_cpu_conf. There are no custom models here.
func knownCPU(read map[string]string) string {
	kind := read["cputype"]
	custom, isCustom := strings.CutPrefix(kind, "custom-")
	switch {
	case kind == "":
		return "CPU is missing cputype"
	case isCustom:
		return fmt.Sprintf("Custom cputype '%s' not found", custom)
	case !slices.Contains(cpuTypes, kind):
		return fmt.Sprintf("Built-in cputype '%s' is not defined (missing 'custom-' prefix?)", kind)
	}
	for _, flag := range strings.FieldsFunc(read["flags"], func(r rune) bool { return r == ';' }) {
		if !slices.Contains(cpuFlags, flag[1:]) {
			return "VM-specific CPU flags must be a subset of: " + strings.Join(cpuFlags, ", ")
		}
	}
	if read["reported-model"] != "" {
		return "Property 'reported-model' not allowed in VM-specific CPU config."
	}
	return ""
}
