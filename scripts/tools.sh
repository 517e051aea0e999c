#!/usr/bin/env bash
# The programs that the proving ground's tests run, built from Go modules where
# that is not done yet, and their folders: tools.sh CASTLE CACHE [TOOL...].
set -euo pipefail
exec "$1" tool --cache="$2" "${@:3}" tofu terragrunt etcd kubernetes metallb external-secrets \
	source-controller kustomize-controller helm-controller notification-controller provider-{proxmox,helm,kubernetes,kubectl}
