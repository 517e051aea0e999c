#!/usr/bin/env bash
# What real Talos nodes are made of, built where that is not done yet: setup-talos.sh CASTLE CACHE. It prints the program castle-node, and the
# folders of Talos, containerd and etcd.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	"$1" packages runc
fi
CGO_ENABLED=0 go build -trimpath -o "$2/bin/castle-node" ./ci/cmd/castle-node # the nodes have no library
echo "$2/bin/castle-node"
exec "$1" tool --cache="$2" talos containerd etcd
