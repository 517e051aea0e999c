#!/usr/bin/env bash
# What real Talos nodes are made of, built where that is not done yet: setup-talos.sh CASTLE CACHE [kubernetes|create]. It prints the program
# castle-node, the folders of Talos, containerd and etcd, for nodes with Kubernetes those of its control plane, its kubelet and its network, and
# for a create on them that of MetalLB's speaker. Where the official image can be had, Talos and containerd are that one's.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=() tools=(etcd)
if ! talos=$(scripts/talos-image.sh "$2"); then
	tools=(talos containerd etcd)
	command -v runc >/dev/null || packages+=(runc) # that of Docker's own packages would have to go for Debian's
fi
if [ -n "${3:-}" ]; then
	packages+=(containernetworking-plugins iptables mount nftables)
	tools+=(kubernetes kubelet coredns flannel flannel-cni)
fi
if [ "${3:-}" = create ]; then
	tools+=(metallb-speaker)
	scripts/tools.sh "$1" "$2" >/dev/null
fi
if [ ${#packages[@]} -gt 0 ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	"$1" packages "${packages[@]}"
fi
CGO_ENABLED=0 go build -trimpath -o "$2/bin/castle-node" ./ci/cmd/castle-node # the nodes have no library
echo "$2/bin/castle-node"
[ -z "$talos" ] || printf '%s\n' "$talos" "$talos"
exec "$1" tool --cache="$2" "${tools[@]}"
