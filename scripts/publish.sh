#!/usr/bin/env bash
# publish.sh: publish the blog with the arguments of a person's habit.
#
# Secrets come by environment: REGISTRY_PASSWORD, GITOPS_TOKEN. The registry's
# user is that of castle.yaml, or REGISTRY_USERNAME. Everything after the name
# goes to `dagger call publish-blog` as it is; see its --help.
set -euo pipefail
: "${REGISTRY_PASSWORD:?the password or token for the image registry}" "${GITOPS_TOKEN:?the token for the GitOps repository}"
exec dagger --mod="$(dirname "$0")/.." call publish-blog \
	${REGISTRY_USERNAME:+--registry-username="$REGISTRY_USERNAME"} \
	--registry-password=env:REGISTRY_PASSWORD \
	--git-token=env:GITOPS_TOKEN \
	--headers=strict \
	"$@"
