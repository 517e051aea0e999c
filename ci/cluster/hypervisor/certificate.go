package hypervisor

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
)

// Roots are the system's authorities and those of certificates, which are in PEM; nil, which stands for the system's, where there are no
// certificates.
func Roots(certificates []byte) (*x509.CertPool, error) {
	if len(certificates) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(certificates) {
		return nil, errors.New("there is no certificate in PEM")
	}
	return roots, nil
}

// transport verifies Proxmox's certificate as the description wants it.
func transport(cluster *config.Cluster, roots *x509.CertPool) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, InsecureSkipVerify: cluster.Proxmox.Insecure}
	if want := cluster.Proxmox.Fingerprint; want != "" {
		// The fingerprint is the whole proof: who signed the certificate, and for which name, is not asked.
		transport.TLSClientConfig.InsecureSkipVerify = true
		transport.TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error {
			if got := fingerprint(state.PeerCertificates[0]); !strings.EqualFold(got, want) {
				return &otherCertificate{want: want, got: got}
			}
			return nil
		}
	}
	return transport
}

// fingerprint is the SHA-256 of a certificate as Proxmox's web UI shows it, AA:BB:….
func fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// otherCertificate says that the server does not have the certificate that the description names.
type otherCertificate struct{ want, got string }

func (e *otherCertificate) Error() string {
	return fmt.Sprintf("the certificate is not the one that proxmox.fingerprint names: expected %s, got %s", strings.ToUpper(e.want), e.got)
}

// Refusal is why Proxmox's certificate is not accepted, and what to do about it.
type Refusal struct{ Seen, Fix string }

func (r *Refusal) Error() string { return r.Seen + ": " + r.Fix }

// verifyTime bounds the look at Proxmox's certificate.
const verifyTime = 30 * time.Second

// Verify asks Proxmox for its certificate, once and without the token, and fails where castle or the layers' tools would not accept
// it. It returns, in PEM, what the tools have to be given as an authority so that they accept it: nothing where the system's
// authorities do.
//
// The tools cannot be told of a fingerprint. Go takes a certificate that is itself among the authorities without asking who signed it
// (crypto/x509, Certificate.Verify); its name and its time are looked at all the same.
func Verify(ctx context.Context, cluster *config.Cluster, roots *x509.CertPool, certificates []byte) ([]byte, error) {
	if cluster.Proxmox.Insecure {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	var leaf *x509.Certificate
	response, err := ask(ctx, cluster, roots)
	if err == nil {
		leaf = response.TLS.PeerCertificates[0]
	}
	if err == nil && cluster.Proxmox.Fingerprint != "" {
		certificates = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
		err = accepted(leaf, cluster.Proxmox.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s for its certificate: %w", cluster.Proxmox.URL, explained(err, cluster))
	}
	return certificates, nil
}

// Clock is the time that Proxmox's answers have, to the second: its server dates each of them, also that it refuses (pve-http-server,
// PVE/APIServer/AnyEvent.pm).
func Clock(ctx context.Context, cluster *config.Cluster, roots *x509.CertPool) (time.Time, error) {
	response, err := ask(ctx, cluster, roots)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask Proxmox at %s for its time: %w", cluster.Proxmox.URL, err)
	}
	return http.ParseTime(response.Header.Get("Date"))
}

// ask shakes hands and asks for nothing, without the token.
func ask(ctx context.Context, cluster *config.Cluster, roots *x509.CertPool) (*http.Response, error) {
	transport := transport(cluster, roots)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, cluster.Proxmox.URL, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request) // follows no redirect
	if err != nil {
		return nil, err
	}
	return response, response.Body.Close()
}

// accepted says whether Go takes the certificate at that address when it is an authority itself.
func accepted(leaf *x509.Certificate, address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	itself := x509.NewCertPool()
	itself.AddCert(leaf)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: itself, DNSName: at.Hostname()})
	return err
}

// explained adds to why a certificate is refused what to do about it.
func explained(err error, cluster *config.Cluster) error {
	var other *otherCertificate
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &other):
		return &Refusal{other.Error(), "if it was renewed, compare with Proxmox's web UI (Node → System → Certificates) and write the new one"}
	case errors.As(err, &unknown) && cluster.Proxmox.CA != "":
		return &Refusal{
			fmt.Sprintf("the certificate is not signed by the authority in %s, but by %q; it has the fingerprint %s", cluster.Proxmox.CA, unknown.Cert.Issuer.CommonName, fingerprint(unknown.Cert)),
			"copy /etc/pve/pve-root-ca.pem of this Proxmox there, or the authority's own certificate where the node has one from elsewhere"}
	case errors.As(err, &unknown):
		return &Refusal{fmt.Sprintf("no authority that this machine knows has signed the certificate, but %q", unknown.Cert.Issuer.CommonName),
			fmt.Sprintf("copy /etc/pve/pve-root-ca.pem of a Proxmox node beside cluster.yaml and write ca: pve-root-ca.pem below proxmox, "+
				"or compare %s with the fingerprint in Proxmox's web UI (Node → System → Certificates) and write it as fingerprint", fingerprint(unknown.Cert))}
	case errors.As(err, &name):
		return &Refusal{fmt.Sprintf("the certificate is not for %s, but for %s, and OpenTofu's provider insists on the name", name.Host, strings.Join(names(name.Certificate), ", ")),
			"write one of these in proxmox.url"}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &Refusal{fmt.Sprintf("the certificate is good from %s to %s only, and this machine's time is %s",
			invalid.Cert.NotBefore.UTC().Format(time.DateTime), invalid.Cert.NotAfter.UTC().Format(time.DateTime), time.Now().UTC().Format(time.DateTime)),
			"renew it on the Proxmox node (pvecm updatecerts --force)"}
	}
	return err
}

// names are what a certificate is for.
func names(certificate *x509.Certificate) []string {
	list := slices.Clone(certificate.DNSNames)
	for _, address := range certificate.IPAddresses {
		list = append(list, address.String())
	}
	return list
}
