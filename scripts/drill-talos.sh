#!/usr/bin/env bash
# What machines that run Talos do, on real nodes: drill-talos.sh CASTLE CACHE [kubernetes|create] [FLAG...], with flags of a test's program. What
# the nodes are made of is built first where it is not there. It needs root: nodes are namespaces, below those that it makes for them all.
set -euo pipefail
cd "$(dirname "$0")/.."
castle=$1 cache=$(realpath "$2")
shift 2
package=talosnodes test=TestRealNodes with=
case "${1:-}" in
kubernetes) test=TestRealKubernetes with=$1 ;;
create) package=scenarios test='TestCreateOnRealNodes.*' with=$1 ;;
esac
[ -z "$with" ] || shift
if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then
	echo "real Talos nodes need Linux and root: run this target with sudo, or in a container with all capabilities" >&2
	exit 1
fi
made=$(scripts/setup-talos.sh "$castle" "$cache" "$with")
export CASTLE_TALOS_NODES=${made//$'\n'/:}
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false -ldflags=-w"
go test -c -vet=off -o "$cache/bin/$package.test" "./ci/test/$package"
cd "ci/test/$package"
export CASTLE=$castle CASTLE_CACHE=$cache
exec unshare --net --mount --pid --fork --mount-proc --kill-child \
	"$cache/bin/$package.test" -test.count=1 -test.timeout=60m -test.v -test.run="^$test\$" "$@"
