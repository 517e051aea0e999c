#!/usr/bin/env bash
# vet, lint and unit tests, which need nothing but Go and Git: the quick part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/lint.sh
go test -short -timeout 5m ./...
