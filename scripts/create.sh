#!/usr/bin/env bash
# create.sh: create a cluster, or the rest of it.
#
#   scripts/create.sh --cluster blue
#
# The age key that opens the cluster's SOPS file comes by environment, as
# SOPS_AGE_KEY; a sandbox brings its own. Everything else goes to
# `dagger call create` as it is; see its --help.
set -euo pipefail
exec dagger --mod="$(dirname "$0")/.." call create \
	${SOPS_AGE_KEY:+--age-key=env:SOPS_AGE_KEY} \
	"$@"
