#!/usr/bin/env bash
# Interrupts create, destroy and nuclear-wipe at random instants: interruptions.sh CASTLE CACHE NUMBER SEED [out|create], with one of the
# last, the ways out alone or create alone.
# The rows at the end are those of docs/reliability.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export CASTLE=$1 CASTLE_CACHE=$2 CASTLE_INTERRUPTIONS=$3 CASTLE_INTERRUPTIONS_SEED=$4 CASTLE_INTERRUPTIONS_ONLY=${5:-} CASTLE_REQUIRE_ALL=1
unset TF_CLI_CONFIG_FILE

scripts/tools.sh "$CASTLE" "$CASTLE_CACHE" >/dev/null
log=$(mktemp)
status=0
go test -count=1 -timeout 12h -parallel 2 -v -run TestARunGoesOnAfterAnyInterruption ./ci/test/scenarios | tee "$log" || status=$?
grep -oE '\| [0-9]+ \| .*' "$log" || true
rm -f "$log"
exit "$status"
