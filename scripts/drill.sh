#!/usr/bin/env bash
# All scenarios of the proving ground: drill.sh CASTLE CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."
export CASTLE=$1 CASTLE_CACHE=$2 CASTLE_REQUIRE_ALL=1
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false -ldflags=-w"
unset TF_CLI_CONFIG_FILE

scripts/tools.sh "$CASTLE" "$CASTLE_CACHE" >/dev/null
exec go test -count=1 -timeout 60m -parallel 3 -v ./ci/test/scenarios
