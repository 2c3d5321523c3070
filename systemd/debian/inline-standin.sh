#!/bin/sh
# SPDX-License-Identifier: MIT
# Try Inline on this machine: inline-standin(8).
set -eu

here=$(dirname "$(realpath "$0")")/..
if [ "$(id -u)" = 0 ]; then
	data=/var/lib/inline-standin
else
	data=${XDG_STATE_HOME:-$HOME/.local/state}/inline-standin
fi
: "${IL_STATE_DIR:=$data/state}" "${IL_BASE_DIR:=$data/sandboxes}"
# run.sh goes elsewhere, and of an .env there it should know nothing.
IL_ENV_FILE=$(realpath "${IL_ENV_FILE:-/dev/null}")
export IL_STATE_DIR IL_BASE_DIR IL_ENV_FILE
mkdir -p "$IL_STATE_DIR" "$IL_BASE_DIR"
cd "$here/share/inline-standin"
exec sandbox/setup/run.sh "$here"
