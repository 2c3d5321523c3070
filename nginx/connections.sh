#!/bin/sh
# SPDX-License-Identifier: MIT
# connections.sh [FILE]: let nginx have 8,192 connections, which Inline's limits
# assume, instead of Debian's 768.  FILE.bak is what was there first.
set -eu
file=${1:-/etc/nginx/nginx.conf}
grep -q 'worker_connections[[:space:]]*[0-9]*;' "$file" || {
	echo "connections.sh: $file sets no worker_connections" >&2
	exit 1
}
[ -e "$file.bak" ] || cp -p "$file" "$file.bak"
exec sed -i --follow-symlinks -e '1i worker_rlimit_nofile 16384;' \
	-e '/^\s*worker_rlimit_nofile\s*[0-9]*;\s*$/d' \
	-e 's/worker_rlimit_nofile\s*[0-9]*;//' \
	-e 's/worker_connections\s*[0-9]\{1,4\};/worker_connections 8192;/' \
	"$file"
