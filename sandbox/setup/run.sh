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
SANDBOX_IMAGE=$(sandbox/setup/image.sh | tail -n 1)
[ -n "$SANDBOX_IMAGE" ] || die "no image"
SANDBOX_IMAGES=$(sandbox/setup/image.sh --interpreters "$SANDBOX_IMAGE" |
	tail -n 1)
[ -n "$SANDBOX_IMAGES" ] || die "no images"
export SANDBOX_IMAGE SANDBOX_IMAGES
exec "$1/bin/ilctl" run
