#!/bin/sh
# SPDX-License-Identifier: MIT
# one.sh TEST: run a test for 15 minutes at most, and print what it said.
#
# It says it into a file.  A pipe would be open for as long as any process that
# the test left behind, and prove would read from it without an end.  The file
# is locked for as long: each of those processes has the lock by its descriptor.
# One that is there 10 seconds after the test is named, ended, and the test red.
set -eu

said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'exit 1' INT TERM

# holders: the processes that have the file open for writing.
holders() {
	find /proc/[0-9]*/fd -lname "$said" -printf '%h\n' 2>/dev/null |
		cut -d/ -f3 | sort -u
}

exec 3>>"$said"
flock 3
code=0
timeout --foreground -k 10 900 "$1" >&3 2>&1 3>&- </dev/null || code=$?
exec 3>&-
if ! flock -w 10 "$said" true; then
	left=$(holders)
	for pid in $left; do
		# one may end with the one before it
		echo "# left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		kill -KILL "$pid" || :
	done >>"$said" 2>&1
	code=1
fi
[ "$code" != 124 ] || echo '# ended after 15 minutes' >>"$said"
cat "$said"
exit "$code"
