#!/bin/sh
# SPDX-License-Identifier: MIT
# The image's health check: what /health says of all parts.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

port=$(setting IL_HTTP_PORT 8080)
case $port in *://*) port=8080 ;; esac # a service's, not ours
said=$(curl -fsS -m 4 "http://127.0.0.1:$port/health" 2>&1) &&
	case $said in *'"status": "ok"'* | *'"status":"ok"'*) exit 0 ;; esac
printf '%s\n' "$said"
exit 1
