#!/usr/bin/env bash
# All sites of other people: test-sites.sh CASTLE CACHE [SITE]. `make test` takes
# a few of them. The engine's cache is emptied on the way.
set -euo pipefail
cd "$(dirname "$0")/.."
export CASTLE=$1 CASTLE_CACHE=$2 CASTLE_SITES=${3:-all} CASTLE_E2E=1

variables=$("$CASTLE" setup --group=browser --cache="$CASTLE_CACHE")
eval "$variables"
go test -count=1 -timeout 90m -v -run 'TestTheSameCommitGivesTheSameDigestWithAColdCache' ./ci/test/e2e
