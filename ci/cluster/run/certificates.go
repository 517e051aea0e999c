package run

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tazlab.net/castle/ci/cluster/hypervisor"
)

// VariableCertificates names the file of authorities that the tools of the layer platform read instead of the system's own; it is not set where the system's do.
const VariableCertificates = "CASTLE_PROXMOX_CERTIFICATES"

// systemCertificates are where Go looks for the system's authorities on Linux: the first that is there counts (crypto/x509,
// root_linux.go).
var systemCertificates = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// VerifyProxmox fails where Proxmox's certificate is not the one that the description says, before anything is changed, and has
// the tools accept it. What it returns is called when they are done.
func (c *Cluster) VerifyProxmox(ctx context.Context) (done func(), err error) {
	if !c.Description.MakesMachines() {
		return func() {}, nil
	}
	certificates, err := c.Description.Proxmox.Certificates(c.Folder)
	if err != nil {
		return nil, err
	}
	if certificates, err = hypervisor.Verify(ctx, c.Description, c.roots, certificates); err != nil {
		return nil, err
	}
	if certificates == nil {
		return func() {}, nil
	}
	return c.writeCertificates(certificates)
}

// CheckCertificate is VerifyProxmox for who runs no tools.
func (c *Cluster) CheckCertificate(ctx context.Context) error {
	_, err := hypervisor.Verify(ctx, c.Description, c.roots, nil)
	return err
}

// ProxmoxClock is the time that Proxmox has.
func (c *Cluster) ProxmoxClock(ctx context.Context) (time.Time, error) {
	return hypervisor.Clock(ctx, c.Description, c.roots)
}

// writeCertificates makes the file of VariableCertificates: the system's authorities and these. SSL_CERT_FILE takes the place of the
// system's file, whose content is therefore in it; what is in SSL_CERT_DIR, or in the folders that it stands for, Go reads beside it.
func (c *Cluster) writeCertificates(certificates []byte) (done func(), err error) {
	system, err := SystemAuthorities()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "castle-certificates-") // of this user alone
	if err != nil {
		return nil, err
	}
	c.certificates = filepath.Join(folder, "authorities.pem")
	done = func() {
		c.certificates = ""
		_ = os.RemoveAll(folder)
	}
	if err := os.WriteFile(c.certificates, bytes.Join([][]byte{system, certificates}, []byte("\n")), 0o600); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// SystemAuthorities are those that Go would read from a file.
func SystemAuthorities() ([]byte, error) {
	files := systemCertificates
	if named := os.Getenv("SSL_CERT_FILE"); named != "" {
		files = []string{named}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, nil
}
