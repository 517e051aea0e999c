//go:build linux

package kube

import (
	"fmt"
	"path/filepath"
)

const etcdMetricsPort = 2381

func (c *controlPlane) etcdFlags() []string {
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", etcdPort), fmt.Sprintf("https://127.0.0.1:%d", etcdPeerPort)
	return []string{
		"--name=sandbox", "--data-dir=" + filepath.Join(c.folder, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=sandbox=" + peer,
		fmt.Sprintf("--listen-metrics-urls=http://127.0.0.1:%d", etcdMetricsPort),
		"--client-cert-auth", "--trusted-ca-file=" + c.pki("etcd-ca.crt"), "--cert-file=" + c.pki("etcd.crt"), "--key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"), "--peer-cert-file=" + c.pki("etcd.crt"), "--peer-key-file=" + c.pki("etcd.key"),
		// The only member need not wait for others before it leads.
		"--heartbeat-interval=50", "--election-timeout=250",
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=15m",
		// What a killed process has written is safe without; only a crash of the machine below would lose the last moments.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// apiServerFlags follow those of Talos, but for where things stand.
func (c *controlPlane) apiServerFlags() []string {
	issuer := fmt.Sprintf("https://%s:%d", c.config.VIP, kubernetesPort)
	flags := []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", apiPort), "--advertise-address=" + c.config.VIP.String(),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", etcdPort),
		"--etcd-cafile=" + c.pki("etcd-ca.crt"), "--etcd-certfile=" + c.pki("etcd-client.crt"), "--etcd-keyfile=" + c.pki("etcd-client.key"),
		// The reconciler would publish the address that this process listens on, which is loopback.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + c.config.ServiceSubnet.Masked().String(),
		"--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--enable-bootstrap-token-auth",
		"--allow-privileged=true", "--enable-admission-plugins=NodeRestriction", "--admission-control-config-file=" + c.pki("admission.yaml"),
		"--client-ca-file=" + c.pki("ca.crt"), "--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"),
		"--tls-min-version=VersionTLS12",
		"--kubelet-client-certificate=" + c.pki("kubelet-client.crt"), "--kubelet-client-key=" + c.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.pki("aggregator-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.pki("aggregator.crt"), "--proxy-client-key-file=" + c.pki("aggregator.key"),
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer,
		"--service-account-key-file=" + c.pki("service-account.key"), "--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--profiling=false", "--v=1",
	}
	if c.config.SecretboxSecret != "" {
		flags = append(flags, "--encryption-provider-config="+c.pki("encryption.yaml"))
	}
	return flags
}

func (c *controlPlane) controllerManagerFlags() []string {
	return []string{
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false", "--v=1",
		"--kubeconfig=" + c.pki("controller-manager.kubeconfig"), "--authentication-kubeconfig=" + c.pki("controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + c.pki("controller-manager.kubeconfig"),
		"--controllers=*,tokencleaner", "--use-service-account-credentials",
		"--root-ca-file=" + c.pki("ca.crt"), "--service-account-private-key-file=" + c.pki("service-account.key"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
		"--allocate-node-cidrs", "--cluster-cidr=" + c.config.PodSubnet.Masked().String(),
		"--service-cluster-ip-range=" + c.config.ServiceSubnet.Masked().String(),
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

func (c *controlPlane) schedulerFlags() []string {
	return []string{
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false", "--v=1",
		"--kubeconfig=" + c.pki("scheduler.kubeconfig"), "--authentication-kubeconfig=" + c.pki("scheduler.kubeconfig"),
		"--authorization-kubeconfig=" + c.pki("scheduler.kubeconfig"),
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}
