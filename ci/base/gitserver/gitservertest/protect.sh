#!/bin/sh
# Update hook: refuses the branches that the repository's castle.protected settings name.
# Arguments, as git gives them: ref, old object, new object.
set -eu
git config --get-all castle.protected | while read -r branch; do
	if [ "$1" = "refs/heads/$branch" ]; then
		echo "error: GH006: Protected branch update failed for $1." >&2
		echo "error: Changes must be made through a pull request." >&2
		exit 1
	fi
done
