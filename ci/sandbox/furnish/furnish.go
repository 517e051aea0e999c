// Package furnish makes what a sandbox has beside its description: the secrets that its simulated services start from, all of them new, and
// the keys to these. None opens anything outside that sandbox's world.
package furnish

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/google/renameio/v2"
	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/sandbox/world"
)

// KeyFile holds the age key that opens a sandbox's SOPS file.
const KeyFile = "age.key"

// Options say how a world begins.
type Options struct {
	EmptyGit bool // its GitOps repository has no commit, for one that is pushed there
}

// Execute writes the files that are missing in the folder of a sandbox's description. It refuses one that has any of them: what a world was
// made with cannot be opened with anything else.
func Execute(folder string, o Options) error {
	for _, name := range []string{proxmox.AuthorityFile, proxmox.AuthorityKeyFile, KeyFile, world.SeedFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%s has a file %s: this sandbox has its secrets already", folder, name))
		}
	}
	certificate, key, err := authority()
	if err != nil {
		return err
	}
	// The description names it.
	if err := put(folder, proxmox.AuthorityFile, certificate); err != nil {
		return err
	}
	cluster, err := config.Load(folder)
	if err != nil {
		return errors.Join(err, os.Remove(filepath.Join(folder, proxmox.AuthorityFile)))
	}
	if cluster.Platform != config.PlatformSandbox {
		return errors.Join(fmt.Errorf("cluster %s is no sandbox", cluster.Name), os.Remove(filepath.Join(folder, proxmox.AuthorityFile)))
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	seed, clear, err := values(cluster)
	if err != nil {
		return errors.Join(err, os.Remove(filepath.Join(folder, proxmox.AuthorityFile)))
	}
	seed.Git.Empty = o.EmptyGit
	bootstrap, err := yaml.Marshal(clear)
	if err != nil {
		return err
	}
	encrypted, err := sopsfile.Encrypt(cluster.Secrets.SOPS[0], bootstrap, []string{identity.Recipient().String()})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# What the simulated services of the sandbox %s start from when its world has no state yet; none of it opens anything outside.\n", cluster.Name)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(seed), encoder.Close()); err != nil {
		return err
	}
	return errors.Join(
		put(folder, proxmox.AuthorityKeyFile, key),
		put(folder, KeyFile, []byte(identity.String()+"\n")),
		put(folder, world.SeedFile, text.Bytes()),
		put(folder, cluster.Secrets.SOPS[0], encrypted),
	)
}

func put(folder, name string, data []byte) error {
	return renameio.WriteFile(filepath.Join(folder, name), data, 0o644)
}

// values are the world's secrets, and those of them that the SOPS file holds.
func values(c *config.Cluster) (*world.Seed, map[string]string, error) {
	deploy, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, nil, err
	}
	token := "castle@pve!sandbox=" + uuid.NewString()
	clear := map[string]string{
		secrets.StatePassphrase: rand.Text(), secrets.ProxmoxAPIToken: token,
	}
	flux := map[string]string{secrets.GitOpsUsername: "flux", secrets.GitOpsToken: "sbx_" + rand.Text(), secrets.FluxAgeKey: deploy.String()}

	seed := &world.Seed{}
	seed.Proxmox.Tokens = []string{token}
	for _, node := range c.Nodes {
		seed.Proxmox.Nodes = []string{node.Host} // a sandbox has one
	}
	seed.Proxmox.Templates = []world.Template{{ID: c.Proxmox.Template, Name: "talos-nocloud"}}
	seed.Git.ReadToken, seed.Git.Token = flux[secrets.GitOpsToken], "sbx_"+rand.Text()
	seed.Git.Repository = strings.TrimSuffix(path.Base(c.GitOps.URL), ".git")
	if seed.Registry, err = registry(c); err != nil {
		return nil, nil, err
	}
	if i := c.Secrets.Infisical; i.Has() {
		own := newClient(clear, secrets.InfisicalClientID, secrets.InfisicalClientSecret)
		seed.Infisical = infisical.Seed{RequestsPerMinute: 600, Projects: []infisical.Project{{
			ID: i.Project, Slug: i.Slug, Clients: []infisical.Client{own,
				newClient(clear, secrets.InfisicalFluxClientID, secrets.InfisicalFluxClientSecret, infisical.Reading(i.Environment, i.FluxPath)),
				newClient(clear, secrets.InfisicalWorkloadsClientID, secrets.InfisicalWorkloadsClientSecret, infisical.Reading(i.Environment, i.WorkloadsPath)),
			},
			Environments: map[string]map[string]map[string]string{i.Environment: {
				i.Path: {}, i.FluxPath: flux, i.WorkloadsPath: {secrets.Proof: rand.Text()},
			}},
		}}}
	}
	return seed, clear, nil
}

// newClient is a machine identity with these rules, whose id and secret are put among the secrets by their names.
func newClient(clear map[string]string, id, secret string, rules ...infisical.Permission) infisical.Client {
	client := infisical.Client{ID: uuid.NewString(), Secret: rand.Text() + rand.Text(), TokenTTL: 2 * time.Hour, Permissions: rules}
	clear[id], clear[secret] = client.ID, client.Secret
	return client
}

// registry is where the world serves one without TLS, as the machines are told.
func registry(c *config.Cluster) (netip.AddrPort, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Talos.RegistryMirrors)) {
		if at, err := netip.ParseAddrPort(name); err == nil && c.Network.Subnet.Contains(at.Addr()) {
			return at, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("talos.registryMirrors in cluster.yaml has no registry of the sandbox's own, which the machines ask without TLS; "+
		"write an address of %s that nobody has, such as {\"192.168.77.13:5000\": [\"http://192.168.77.13:5000\"]}", c.Network.Subnet)
}

// authority is who signs the certificate of the simulated Proxmox. Source of its form: pve-cluster, PVE/Cluster/Setup.pm, gen_pve_root_ca.
func authority() (certificate, key []byte, err error) {
	signer, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	begin := time.Now().Add(-time.Hour)
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Proxmox Virtual Environment", OrganizationalUnit: []string{uuid.NewString()}, Organization: []string{"PVE Cluster Manager CA"}},
		NotBefore:    begin, NotAfter: begin.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}
