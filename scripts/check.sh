#!/usr/bin/env bash
# vet, lint and unit tests, which need nothing but Go and Git: the quick part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# As in scripts/test.sh: what one of them has compiled, the other one need not.
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false -ldflags=-w"
scripts/lint.sh quick
go test -vet=off -short -timeout 5m ./... # vet has had its turn
