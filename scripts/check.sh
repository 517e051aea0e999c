#!/usr/bin/env bash
# vet, lint and unit tests: the quick part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(gofmt -l ci .dagger/*.go)
if [ -n "$unformatted" ]; then
	printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
go tool staticcheck ./...
if command -v shellcheck >/dev/null; then
	shellcheck scripts/*.sh .ci/run
else
	echo "shellcheck is not installed: the scripts were not checked" >&2
	[ -z "${CASTLE_REQUIRE_ALL:-}" ] || exit 1
fi
# The end-to-end tests want an engine or tools; scripts/test.sh runs them.
mapfile -t packages < <(go list ./... | grep -Ev "/ci/test/(e2e|docker|scenarios)$")
go test -timeout 20m "${@:---short}" "${packages[@]}"
