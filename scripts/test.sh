#!/usr/bin/env bash
# All set-up and all tests but some slow ones, with ALL=1 those as well: test.sh CASTLE CACHE. What cannot run is skipped with
# a reason, or fails when CASTLE_REQUIRE_ALL is set, as CI sets it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CASTLE=$1 CASTLE_CACHE=$2

# What the tests use beside Go and Git. The engine's own packages are installed
# by `castle setup`.
packages=(openssh-client shellcheck nginx-light mmdebstrap debian-archive-keyring slirp4netns chromium git-lfs)
command -v dockerd >/dev/null || packages+=(docker.io) # Docker's own packages would have to go for Debian's
command -v npm >/dev/null || packages+=(npm) # Node.js from elsewhere has its own
command -v gcc >/dev/null || packages+=(gcc libc6-dev) # the race detector is C
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	"$CASTLE" packages "${packages[@]}"
fi

# Each test says itself which runs have no time for it (ci/test/needs/tier.go), and notes itself when it is left out.
[ -n "${ALL:-}" ] || export CASTLE_TEST_RUN=most
CASTLE_LEFT_OUT=$(mktemp)
export CASTLE_LEFT_OUT
last_words() {
	[ ! -s "$CASTLE_LEFT_OUT" ] || { printf '\nleft out, by what runs it:\n' && sort -u "$CASTLE_LEFT_OUT"; }
	rm -f "$CASTLE_LEFT_OUT"
}
trap last_words EXIT

step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }

# What one clone of the repository has compiled, another one need not; and a debugger's tables, which nobody reads here,
# would be a seventh of the time that compiling takes, and a third of linking.
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false -ldflags=-w"

# A setting of the user's own would be read by the OpenTofu that the tests run.
unset TF_CLI_CONFIG_FILE

# Vet and lint need no tools, and building those leaves a core idle while it downloads and links.
lint_says=$(mktemp)
scripts/lint.sh quick >"$lint_says" 2>&1 &
lint=$!
trap 'kill "$lint" 2>/dev/null || true; rm -f "$lint_says"; last_words' EXIT

# Unit tests run these programs themselves; without them they are skipped.
if [ -n "${CASTLE_REQUIRE_ALL:-}" ]; then
	step "the tools, from Go modules"
	folders=$(scripts/tools.sh "$CASTLE" "$CASTLE_CACHE" hugo)
	PATH=${folders//$'\n'/:}:$PATH
	# Of the engine, a test compiles what its SDK brings; it is not for PATH, where it would pass for one that somebody has installed.
	"$CASTLE" tool --cache="$CASTLE_CACHE" dagger >/dev/null
fi

step "vet and lint"
linted=0
wait "$lint" || linted=$?
trap 'rm -f "$lint_says"; last_words' EXIT
cat "$lint_says"
[ "$linted" = 0 ] || exit "$linted"

race=(-race) groups=create,browser others='/ci/test/(e2e|docker|scenarios)$' cold=
if [ -z "${ALL:-}" ] && [ "$SECONDS" -gt 1800 ]; then
	cold=1 race=() groups=create others='/ci/(test|sandbox)/' # what the race detector needs would be compiled beside all else
	export CASTLE_TEST_RUN=main-paths
	echo 'the tools had to be built first; left to the next "make test" are golangci-lint, the race detector, the integration tests of ci/sandbox and ci/test, the'
	echo 'scenarios, the tests with Docker, and of the end-to-end tests all but the main paths'
fi

if [ -z "$cold" ]; then
	step "golangci-lint"
	scripts/lint.sh golangci
fi

step "unit tests${race:+, with the race detector}"
CGO_ENABLED=1 go test -vet=off -short "${race[@]}" -timeout 10m ./... # vet has had its turn

# The rest starts worlds: control planes, browsers, Debian roots, daemons. Its packages are those whose tests say what they
# need of a machine; in all others the step before has run every test.
step "integration tests"
mapfile -t packages < <(go list -test -f '{{.ImportPath}} {{.Deps}}' ./... |
	sed -nE 's|^([^ ]+)\.test .*/ci/test/needs[] ].*|\1|p' | grep -Ev "$others")
[ ${#packages[@]} -gt 0 ] || { echo "no package's tests say what they need: ci/test/needs has moved" >&2; exit 1; }
go test -vet=off -count=1 -timeout 20m "${packages[@]}"

step "the engine"
variables=$("$CASTLE" setup --group="$groups" --cache="$CASTLE_CACHE")
eval "$variables"

if [ -z "$cold" ]; then
	step "create, against the proving ground"
	go test -count=1 -timeout 40m -parallel 3 -v ./ci/test/scenarios
fi

# -v, so that the output says what ran. One package after the other: both keep
# two cores busy.
step "the normal path, with Docker, and the end-to-end tests"
CASTLE_E2E=1 go test -p 1 -count=1 -timeout 60m -v ./ci/test/docker ./ci/test/e2e
