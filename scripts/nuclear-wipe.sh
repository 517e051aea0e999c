#!/usr/bin/env bash
# nuclear-wipe.sh: list what of a cluster would go where destroy cannot, by Proxmox's API alone; with --confirm remove it.
#
#   scripts/nuclear-wipe.sh --cluster blue
#
# The age key that opens the cluster's SOPS file comes by environment, as
# SOPS_AGE_KEY; a sandbox brings its own. Everything else goes to
# `dagger call nuclear-wipe` as it is; see its --help.
set -euo pipefail
exec dagger --mod="$(dirname "$0")/.." call nuclear-wipe \
	${SOPS_AGE_KEY:+--age-key=env:SOPS_AGE_KEY} \
	"$@"
