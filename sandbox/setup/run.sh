#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD: the rest of `make run`, with everything installed and built.
# From here on the process is `ilctl run`: it starts the programs, and ends them
# when it is told to end.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

if [ -z "${IL_ENV_FILE-}" ] && [ -f .env ]; then
	IL_ENV_FILE=$PWD/.env
	export IL_ENV_FILE
fi
sandbox/setup/engine.sh

# no_image KEY: say what a pod without a registry can do.
no_image() {
	die "no image for $1; the lines above say why. Where no registry answers," \
		"mount archives of 'docker save' at /images" \
		"(systemd/kubernetes/OPERATE.md, Sizes)"
}

SANDBOX_IMAGE=$(sandbox/setup/image.sh | tail -n 1)
[ -n "$SANDBOX_IMAGE" ] || no_image SANDBOX_IMAGE
SANDBOX_IMAGES=$(sandbox/setup/image.sh --interpreters "$SANDBOX_IMAGE" |
	tail -n 1)
[ -n "$SANDBOX_IMAGES" ] || no_image SANDBOX_IMAGES
export SANDBOX_IMAGE SANDBOX_IMAGES
exec "$1/bin/ilctl" run
