#!/usr/bin/env bash
# Talos's official image, unpacked: talos-image.sh CACHE. It prints the folder. Without Docker, or a way to the image, it says why not.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version: //p' ci/setup/gotool/recipes/talos/recipe.yaml)
image=ghcr.io/siderolabs/talos:$version
folder=$1/talos-image/$version
if [ -d "$folder" ]; then
	echo "$folder"
	exit
fi
if ! timeout 20 docker info >/dev/null 2>&1; then
	echo "without Docker, $image cannot be had" >&2
	exit 1
fi
if ! timeout 20 docker image inspect "$image" >/dev/null 2>&1; then
	echo "pulling $image" >&2
	timeout 600 docker pull --quiet "$image" >&2
fi
container=$(timeout 60 docker create "$image")
trap 'timeout 60 docker rm "$container" >/dev/null; rm -rf "${made:-}"' EXIT
mkdir -p "$1/talos-image"
made=$(mktemp -d "$1/talos-image/.made.XXXXXX")
# What Docker has put there for a container of its own is left out: each node gets its devices when it starts.
timeout 600 docker export "$container" | tar --extract --directory "$made" --no-same-owner --exclude='dev/*' --exclude=.dockerenv
chmod 755 "$made"
mv "$made" "$folder"
echo "$folder"
