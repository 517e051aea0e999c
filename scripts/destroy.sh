#!/usr/bin/env bash
# destroy.sh: remove a cluster.
#
#   scripts/destroy.sh --cluster blue --confirm blue
#
# The age key that opens the cluster's SOPS file comes by environment, as
# SOPS_AGE_KEY; a sandbox brings its own. Everything else goes to
# `dagger call destroy` as it is; see its --help.
set -euo pipefail
exec dagger --mod="$(dirname "$0")/.." call destroy \
	${SOPS_AGE_KEY:+--age-key=env:SOPS_AGE_KEY} \
	"$@"
