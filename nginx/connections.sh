#!/bin/sh
# SPDX-License-Identifier: MIT
# connections.sh [FILE]: let nginx have 8,192 connections, which Inline's limits
# assume, instead of Debian's 768.  FILE.bak is what was there before.
exec sed -i.bak --follow-symlinks -e '1i worker_rlimit_nofile 16384;' \
	-e '/^\s*worker_rlimit_nofile\s*[0-9]*;\s*$/d' \
	-e 's/worker_rlimit_nofile\s*[0-9]*;//' \
	-e 's/worker_connections\s*[0-9]*;/worker_connections 8192;/' \
	"${1:-/etc/nginx/nginx.conf}"
