#!/usr/bin/env bash
# All set-up and all tests: test.sh CASTLE CACHE. What cannot run is skipped with
# a reason, or fails when CASTLE_REQUIRE_ALL is set, as CI sets it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CASTLE=$1 CASTLE_CACHE=$2

# What the tests use beside Go and Git. The engine's own packages are installed
# by `castle setup`.
packages=(openssh-client shellcheck nginx-light mmdebstrap debian-archive-keyring docker.io slirp4netns)
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	"$CASTLE" packages "${packages[@]}"
fi

step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }

# One of the unit tests runs Hugo itself.
if [ -n "${CASTLE_REQUIRE_ALL:-}" ]; then
	PATH=$("$CASTLE" tool hugo --cache="$CASTLE_CACHE"):$PATH
fi

step "vet, lint, unit and integration tests"
scripts/check.sh -count=1

step "the engine"
variables=$("$CASTLE" setup --cache="$CASTLE_CACHE")
eval "$variables"

# -v, so that the output says what ran. One package after the other: both keep
# two cores busy.
step "the normal path, with Docker, and the end-to-end tests"
CASTLE_E2E=1 go test -p 1 -count=1 -timeout 60m -v ./ci/dockertest ./ci/e2e
