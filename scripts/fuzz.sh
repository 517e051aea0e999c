#!/usr/bin/env bash
# Looks for input that breaks what reads texts of other people: fuzz.sh TIME, for each of the targets below.
set -euo pipefail
cd "$(dirname "$0")/.."

while read -r target package; do
  echo "$target"
  # Minimizing an input that is merely interesting would take most of the time.
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$package" | tail -n 3
done <<'EOF'
FuzzBump ./ci/publish/manifest
FuzzDescription ./ci/cluster/config
FuzzFile ./ci/publish/settings
FuzzRedactTakesOutAValueThatWasEncodedTwice ./ci/base/redact
FuzzRedactTakesOutWhatACutLeaves ./ci/base/redact
EOF
