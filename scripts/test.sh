#!/usr/bin/env bash
# All set-up and all tests: test.sh CASTLE CACHE. What cannot run is skipped with
# a reason, or fails when CASTLE_REQUIRE_ALL is set, as CI sets it.
set -euo pipefail
cd "$(dirname "$0")/.."
castle=$1 cache=$2

# What the tests use beside Go and Git. The engine's own packages are installed
# by `castle setup`.
packages=(openssh-client shellcheck nginx-light mmdebstrap debian-archive-keyring chromium docker.io)
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	"$castle" packages "${packages[@]}"
fi

step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }

step "vet, lint, unit and integration tests"
scripts/check.sh -count=1

step "the engine"
variables=$("$castle" setup --cache="$cache")
eval "$variables"

step "end-to-end tests"
CASTLE=$castle CASTLE_CACHE=$cache CASTLE_E2E=1 go test -count=1 -timeout 60m -v ./ci/e2e
