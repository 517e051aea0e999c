package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

// tenSecrets are as long and as full of signs as tokens, passphrases and keys are.
func tenSecrets() []string {
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf("castle@pve!%d=7f3a+9c1d/%x&<%d>", i, i*7919, i))
	}
	return list
}

// A Redact of 1 MB of log with ten secrets, one of them in every hundredth line.
func BenchmarkRedact(b *testing.B) {
	secrets := tenSecrets()
	var log strings.Builder
	for line := 0; log.Len() < 1<<20; line++ {
		fmt.Fprintf(&log, "2026-01-02T03:04:05Z proxmox_virtual_environment_vm.node[%d]: Still creating... [%ds elapsed] https://pve:8006/api2/json\n", line, line)
		if line%100 == 0 {
			fmt.Fprintf(&log, "token %s refused\n", secrets[line/100%10])
		}
	}
	text := log.String()
	r := New(secrets...)
	r.Redact("x")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Redact(text)
	}
}

// Ten secrets made known to a redactor that is then used.
func BenchmarkAdd(b *testing.B) {
	secrets := tenSecrets()
	for b.Loop() {
		New(secrets...).Redact("x")
	}
}

// Machine secrets made known to a redactor that is then used, as in each process that a layer's hook calls.
func BenchmarkAddMachineSecrets(b *testing.B) {
	var bundle strings.Builder
	for i := range 6 {
		key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes.Repeat([]byte{byte(i), 0xfb, 0x7e}, 200)})
		fmt.Fprintf(&bundle, "    authority%d:\n        key: %s\n", i, base64.StdEncoding.EncodeToString(key))
	}
	for b.Loop() {
		New(bundle.String()).Redact("x")
	}
}
