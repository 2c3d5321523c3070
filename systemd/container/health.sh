#!/bin/sh
# SPDX-License-Identifier: MIT
# The image's health check: what /health says of all parts.
#
#	health.sh		can a command be answered now?
#	health.sh engine	does the engine answer, and start containers?  If not,
#				this one is to be started again
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

if [ "${1-}" = engine ]; then
	said=$(ilctl status 2>/dev/null | head -n 1)
	case $said in
	*"Docker engine does not answer"* | *"docker run takes longer"* | \
		*"has been starting a container"*) ;;
	*) exit 0 ;;
	esac
	printf '%s\n' "$said"
	exit 1
fi
port=$(setting IL_HTTP_PORT 8080)
case $port in *://*) port=8080 ;; esac # a service's, not ours
said=$(curl -fsS -m 4 "http://127.0.0.1:$port/health" 2>&1) &&
	case $said in *'"status": "ok"'* | *'"status":"ok"'*) exit 0 ;; esac
printf '%s\n' "$said"
exit 1
