package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"tazlab.net/castle/ci/base/redact"
)

// FromKubeconfig connects with the current context of a kubeconfig, given as its text. All credentials must stand in
// it: a file that it names or a program that it calls is on another machine than this one, and is an error.
func FromKubeconfig(text []byte) (*Client, error) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be read: give its text, as kubectl config view --raw --minify --flatten prints it") // a parser's error would quote it
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, fmt.Errorf("the kubeconfig has no current context %q: choose one with kubectl config use-context", config.CurrentContext)
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("the kubeconfig's context %s lacks its cluster or its user", config.CurrentContext)
	}
	if err := elsewhere(cluster, user); err != nil {
		return nil, fmt.Errorf("the kubeconfig's context %s %w", config.CurrentContext, err)
	}
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig's context %s: %w", config.CurrentContext, err)
	}
	// Nothing else of it is secret, and an error may name its server.
	redact.Add(rest.BearerToken, rest.Password, string(rest.KeyData))
	return newClient(rest)
}

// elsewhere reports what a kubeconfig wants of the machine that it is from.
func elsewhere(cluster *api.Cluster, user *api.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return fmt.Errorf("gets its credentials from the program %s: give a kubeconfig with a certificate or a token in it", user.Exec.Command)
	case user.AuthProvider != nil:
		return fmt.Errorf("gets its credentials from the provider %s: give a kubeconfig with a certificate or a token in it", user.AuthProvider.Name)
	}
	for _, file := range []string{cluster.CertificateAuthority, user.ClientCertificate, user.ClientKey, user.TokenFile} {
		if file != "" {
			return fmt.Errorf("names the file %s: put its content in with kubectl config view --raw --minify --flatten", file)
		}
	}
	return nil
}
