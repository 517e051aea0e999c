package config

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// certificate checks by what Proxmox's certificate is known, if not by the system's authorities: one thing, and a whole one.
func (k *checker) certificate() {
	var named []string
	for _, field := range []string{"ca", "fingerprint", "insecure"} {
		if k.Has("proxmox."+field) && (field != "insecure" || k.c.Proxmox.Insecure) {
			named = append(named, field)
		}
	}
	if len(named) > 1 {
		k.Mistake("proxmox", "%s are written, and each says by itself which certificate is accepted; keep %s and remove the rest", strings.Join(named, " and "), named[0])
	}
	if k.Has("proxmox.ca") && k.inside("proxmox.ca", k.c.Proxmox.CA, "pve-root-ca.pem") {
		if _, err := k.c.Proxmox.Certificates(k.beside); err != nil {
			k.Mistake("proxmox.ca", "%v", err)
		}
	}
	const where = "write the one that Proxmox's web UI shows at Node → System → Certificates, of pveproxy-ssl.pem or, where there is none, of pve-ssl.pem"
	if text := k.c.Proxmox.Fingerprint; k.Has("proxmox.fingerprint") && !facts.Of("proxmox.fingerprint").Form.MatchString(text) {
		k.Mistake("proxmox.fingerprint", "%q is not a SHA-256 fingerprint, which is 32 bytes as in AA:BB:…; %s", text, where)
	}
}

// Certificates are those of the file ca in the cluster's folder, in PEM and nothing else; none where the description names no such
// file.
func (p Proxmox) Certificates(folder string) ([]byte, error) {
	if p.CA == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(folder, p.CA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s in the cluster's folder; copy /etc/pve/pve-root-ca.pem of a Proxmox node there", p.CA)
	}
	if err != nil {
		return nil, err
	}
	var certificates []byte
	whole := 0
	for rest := data; ; whole++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil, fmt.Errorf("%s holds a private key, with which anybody can pass for Proxmox; take it out, also of Git's history, and leave the certificate", p.CA)
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return nil, fmt.Errorf("%s holds a %s that is no X.509 certificate; copy /etc/pve/pve-root-ca.pem of a Proxmox node as it is", p.CA, block.Type)
		}
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if whole == 0 || whole != bytes.Count(data, []byte("-----BEGIN ")) {
		return nil, fmt.Errorf("%s is not a whole certificate in PEM, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----; copy /etc/pve/pve-root-ca.pem of a Proxmox node as it is", p.CA)
	}
	return certificates, nil
}
