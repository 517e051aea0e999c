#!/usr/bin/env bash
# Known vulnerabilities of Go modules that castle's own code reaches: such a finding fails. Where Go's database does not answer, the
# copy that is a Go module is asked, and the output says of which day it is.
set -euo pipefail
cd "$(dirname "$0")/.."
scanner=v1.9.0
copy=v0.0.0-20261105234957-e22db6528018
database=()
if ! curl -fsS --max-time 20 -o /dev/null https://vuln.go.dev/index/db.json; then
	echo "vuln.go.dev does not answer: asking its copy $copy, which knows nothing newer than the day in that version" >&2
	at=$(cd "$(mktemp -d)" && go mod download -json "golang.org/x/vulndb@$copy" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	mkdir "$folder/index" "$folder/ID"
	cp "$at"/data/osv/*.json "$folder/ID"
	find "$folder/ID" -name '*.json' -exec cat {} + | jq -s '[.[] | {id, modified, aliases}]' >"$folder/index/vulns.json"
	find "$folder/ID" -name '*.json' -exec cat {} + | jq -s '[.[] | {id, modified} as $of | .affected[]? |
		{path: .package.name, of: ($of + {fixed: ([.ranges[]?.events[]?.fixed // empty] | last // "")})}] |
		group_by(.path) | map({path: .[0].path, vulns: (map(.of) | unique_by(.id))})' >"$folder/index/modules.json"
	jq '{modified: (map(.modified) | max)}' "$folder/index/vulns.json" >"$folder/index/db.json"
	database=(-db "file://$folder")
fi
go run "golang.org/x/vuln/cmd/govulncheck@$scanner" "${database[@]}" "${@:-./...}"
