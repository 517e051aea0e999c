#!/usr/bin/env bash
# All stories, played: drill.sh CASTLE CACHE [FLAG...], with flags of ci/test/drill. With FAULTS=random, N mixes of faults from SEED on
# instead: drill.sh CASTLE CACHE random N SEED.
set -euo pipefail
cd "$(dirname "$0")/.."
castle=$1 cache=$2
shift 2
export CASTLE=$castle CASTLE_CACHE=$cache CASTLE_REQUIRE_ALL=1
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false -ldflags=-w"
unset TF_CLI_CONFIG_FILE

folders=$(scripts/tools.sh "$castle" "$cache" hugo)
if [ "${1:-}" = random ]; then
	export CASTLE_MIXES=$2 CASTLE_MIXES_SEED=$3
	log=$(mktemp)
	status=0
	go test -count=1 -timeout 12h -parallel 2 -v -run TestMixedFaultsAreOutlasted ./ci/test/scenarios | tee "$log" || status=$?
	grep -oE '\| [0-9]+ \| .*' "$log" || true
	rm -f "$log"
	exit "$status"
fi

# What the stories of publishing run, and the engine that the end-to-end tests call.
PATH=${folders//$'\n'/:}:$PATH
variables=$("$castle" setup --group=create,browser --cache="$cache")
eval "$variables"
exec go run ./ci/test/drill "$@"
