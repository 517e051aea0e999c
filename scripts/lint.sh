#!/usr/bin/env bash
# Formatting, vet and lint, of Go and of the scripts: lint.sh [quick|golangci].
# Quick leaves out golangci-lint, which takes minutes to build; golangci is that alone.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" != quick ]; then
	go tool -modfile=scripts/golangci-lint.mod golangci-lint run ./...
	[ "${1:-}" != golangci ] || exit 0
fi

unformatted=$(gofmt -l ci gitops-template .dagger/*.go)
if [ -n "$unformatted" ]; then
	printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
go tool staticcheck ./...
go tool -modfile=ci/test/workflows/actionlint.mod actionlint .github/workflows/*.yaml examples/*/.github/workflows/*.yaml
if command -v shellcheck >/dev/null; then
	shellcheck scripts/*.sh .ci/run
else
	echo "shellcheck is not installed: the scripts were not checked" >&2
	[ -z "${CASTLE_REQUIRE_ALL:-}" ] || exit 1
fi
