#!/bin/sh
# Put the programs, what they read, the manual pages and the units in place.
#
#	install.sh BUILD DESTDIR PREFIX
#	install.sh --library FOLDER	only what the programs read at run time
set -eu

# What the programs find under IL_LIB_DIR.
library() {
	install -d -m 755 "$1" "$1/cell" "$1/sql" "$1/sql/migrations" \
		"$1/sql/admin"
	copy 644 "$1/cell" sandbox/cell/*.py
	copy 644 "$1" sandbox/cell/*.json nginx/nginx.conf.in
	copy 644 "$1/sql" sql/*.sql
	copy 644 "$1/sql/migrations" sql/migrations/*.sql
	copy 644 "$1/sql/admin" sql/admin/*.sql
}

# copy MODE FOLDER FILE...: those of the files that exist.
copy() {
	mode=$1 folder=$2
	shift 2
	for file; do
		[ ! -f "$file" ] || install -m "$mode" "$file" "$folder/"
	done
}

if [ "$1" = --library ]; then
	library "$2"
	exit
fi
