//go:build linux

package kube

import "crypto/x509"

func newPool(of *authority) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(of.certificate)
	return pool
}
