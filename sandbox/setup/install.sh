#!/bin/sh
# SPDX-License-Identifier: MIT
# Put the programs, what they read, the manual pages and the units in place.
#
#	install.sh BUILD DESTDIR PREFIX
#	install.sh --library BUILD FOLDER
#					only what the programs read at run time, in the
#					place of what was there
set -eu

# library BUILD FOLDER: what the programs find under IL_TUNE_LIB_DIR.
library() {
	build=$1
	shift
	install -d -m 755 "$1" "$1/cell" "$1/sql" "$1/sql/migrations" \
		"$1/sql/admin" "$1/nginx"
	copy 644 "$1/cell" sandbox/cell/python/*.py "$build"/gen/cell/*.py \
		"$build/libsupervisor.so"
	copy 644 "$1" sandbox/*/*.json sandbox/cell/python/*.json nginx/nginx.conf.in
	# All that is there goes into each cell: nothing of an older version.
	for old in "$1"/cell/*; do
		name=${old##*/}
		[ -e "sandbox/cell/python/$name" ] ||
			[ -e "$build/gen/cell/$name" ] ||
			[ -e "$build/$name" ] || rm -rf "$old"
	done
	env -i "$build/bin/ilctl" commands >"$1/commands.json" # for the stand-in
	chmod 644 "$1/commands.json"
	copy 644 "$1/nginx" nginx/http.conf nginx/errors.conf \
		nginx/discord.conf "$build/gen/api.conf" nginx/limits.conf \
		nginx/node.conf nginx/nodes.conf nginx/hosts.conf.in
	copy 755 "$1/nginx" nginx/connections.sh
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
	# Swapped, as a `make run` may be reading it.
	rm -rf "$3.new" "$3.old"
	library "$2" "$3.new"
	[ ! -d tests/standin ] || ln -s "$PWD/tests/standin" "$3.new/standin"
	[ ! -e "$3" ] || mv "$3" "$3.old"
	mv "$3.new" "$3"
	rm -rf "$3.old"
	exit
fi

build=$1 prefix=$3 to=$2$3

# unit FOLDER FILE [NAME]: with the prefix put in.
unit() {
	name=${3:-${2##*/}}
	sed "s|@PREFIX@|$prefix|g" "$2" >"$1/$name.new"
	chmod 644 "$1/$name.new"
	mv "$1/$name.new" "$1/$name"
}

install -d -m 755 "$to/bin" "$to/sbin" "$to/lib/inline" \
	"$to/lib/inline/monitoring" \
	"$to/lib/systemd/system" "$to/lib/sysusers.d" "$to/lib/tmpfiles.d" "$to/lib/modprobe.d" \
	"$to/share/man/man5" "$to/share/man/man8" "$to/share/doc/inline"

copy 755 "$to/sbin" "$build/bin/il-fcgi" "$build/bin/il-api" \
	"$build/bin/il-node" "$build/bin/il-worker" "$build/bin/il-sandboxd"
copy 755 "$to/bin" "$build/bin/ilctl"
library "$build" "$to/lib/inline"
copy 644 "$to/share/man/man5" fcgi/*/*.5 sandbox/*/*.5
copy 644 "$to/share/man/man8" fcgi/*/*.8 sandbox/*/*.8
copy 644 "$to/share/doc/inline" README.md LICENSE \
	systemd/inline.env.example .github/CHANGELOG.md
# Of an earlier version.
rm -f "$to/lib/systemd/system/il-migrate.service"
for file in systemd/*.service systemd/*.socket systemd/*.timer \
	systemd/*.target; do
	unit "$to/lib/systemd/system" "$file"
done
unit "$to/share/doc/inline" nginx/inline.conf
copy 644 "$to/lib/inline/monitoring" systemd/monitoring/alerts.yml \
	systemd/monitoring/dashboard.json
unit "$to/share/doc/inline" systemd/monitoring/prometheus.yml
unit "$to/lib/sysusers.d" systemd/inline.sysusers inline.conf
unit "$to/lib/tmpfiles.d" systemd/inline.tmpfiles inline.conf
unit "$to/lib/modprobe.d" systemd/inline.modprobe inline-loop.conf
# AppArmor looks in one place only.
install -d -m 755 "$2/etc/apparmor.d"
copy 644 "$2/etc/apparmor.d" systemd/apparmor/inline-api

cat <<END
Installed under $to.  Then, once (systemd/INSTALL.md has the steps):
	systemd-sysusers && systemd-tmpfiles --create
	install -D -m 600 $prefix/share/doc/inline/inline.env.example \\
		/etc/inline/inline.env	# and fill it in
	systemctl daemon-reload && systemctl enable --now inline.target
END
