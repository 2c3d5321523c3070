#!/bin/sh
# SPDX-License-Identifier: MIT
# `make lint`: everything that can be said about the tree without running it.
# Each step says ok or shows what it found; the status is 1 if any found
# something.  lint.sh STEP... runs only these (function names below).
set -u
cd "$(dirname "$0")"/../.. || exit 1
. sandbox/setup/env.sh

out=build/lint
mkdir -p "$out/units"
jobs=$(nproc)
failed=

# Files of the tree, those that are ignored left out.
tree() {
	git ls-files -co --exclude-standard -- "$@" | sort -u |
		while read -r file; do
			[ ! -f "$file" ] || printf '%s\n' "$file"
		done
}

step() {
	if "$1" >"$out/$1.log" 2>&1; then
		echo "ok      $1"
	else
		echo "FAILED  $1"
		sed 's/^/        /' "$out/$1.log" | tail -n 60
		failed="$failed $1"
	fi
}

# ---- C ----

compile_with() {
	make -s -j"$jobs" O="$out/$1" CC="$1" WERROR=1 build tests
}
gcc_errors() { compile_with gcc; }
clang_errors() { compile_with clang; }

# The analyzer of gcc 12 knows neither our cleanup attributes nor who owns a
# descriptor that is kept in a struct, nor that -1 came with an untouched
# result: those reports are off (clang-tidy sees them right).
gcc_analyzer() {
	make -s -j"$jobs" O="$out/analyzer" CC=gcc WERROR=1 CFLAGS="-g -fanalyzer \
		-Wno-analyzer-malloc-leak -Wno-analyzer-file-leak \
		-Wno-analyzer-use-of-uninitialized-value" build
}

format() {
	tree 'fcgi/*.[ch]' 'sandbox/*.[ch]' 'tests/*.[ch]' |
		xargs clang-format --dry-run -Werror
}

tidy() {
	# shellcheck disable=SC2016 # the inner shell expands them
	tree 'fcgi/*.c' 'sandbox/*.c' |
		xargs -P "$jobs" -n 1 sh -c 'clang-tidy --quiet "$@" -- \
			-std=c17 -D_GNU_SOURCE -DINLINE_VERSION=\"0\" \
			-DINLINE_URL=\"h\" -Ifcgi -Isandbox -Ibuild/lint/gcc/gen 2>&1 |
			grep -vE "warnings? generated" | { ! grep . ; }' tidy
}

# It takes what the list macros of sys/queue.h yield for uninitialised, and
# knows no processor by itself.
check_cpp() {
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr -j "$jobs" \
		--enable=warning,performance,portability \
		--suppress=uninitvar --suppress=missingInclude --suppress=unknownMacro \
		--suppress=normalCheckLevelMaxBranches \
		-D_GNU_SOURCE -D__x86_64__ -DINLINE_VERSION='""' -DINLINE_URL='""' \
		-Ifcgi -Isandbox -I"$out/gcc/gen" fcgi sandbox
}

# McCabe's number of a function; a switch counts as one.
complexity() {
	tree 'fcgi/*.c' 'sandbox/*.c' | xargs pmccabe |
		awk -F '\t' '$1 > 15 { print $6 ": " $1; bad = 1 } END { exit bad }'
}

# ---- the rest ----

light() {
	BUILD=$PWD/$out/gcc PYTHONDONTWRITEBYTECODE=1 \
		prove -q --exec '' tests/lint/*.t
}

shell_scripts() {
	{ tree '*.sh' '.ci/run' tests/lint/pre-commit 'systemd/debian/*.p*' &&
		tree '*.t' | xargs grep -l '^#!/bin/sh'; } |
		xargs shellcheck -x
}

manuals() {
	tree '*.[58]' | xargs -r mandoc -Tlint -Wwarning
}

# The generated configuration with and without stand-in, and production's, for
# one host and for one of several, as systemd/INSTALL.md makes that of it.
nginx_configurations() {
	dir=$(mktemp -d) || return 1
	status=0
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
		-keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null || status=1
	mkdir "$dir/nginx" "$dir/nodes"
	sandbox/setup/install.sh --library "$out/gcc" "$dir/lib/inline"
	sed -e "s|@STATE_DIR@|$dir|g" -e "s|@LIB_DIR@|$dir/lib/inline|g" \
		-e 's|@HTTP_ADDRESS@|127.0.0.1|' -e 's|@HTTP_PORT@|8080|' \
		-e 's|@HTTP_NEAR@||' -e 's|@NODES@||' \
		-e 's|@STANDIN_PORT@|8081|' -e 's|@STOP@|20s|' \
		nginx/nginx.conf.in >"$dir/template"
	sed -e 's|@STANDIN@||' -e 's|@NO_STANDIN@|#|' "$dir/template" \
		>"$dir/with.conf"
	sed -e 's|@STANDIN@|#|' -e 's|@NO_STANDIN@||' "$dir/template" \
		>"$dir/without.conf"
	{
		printf 'pid "%s/pid";\nevents {}\nhttp {\n' "$dir"
		sed -e "s|/etc/letsencrypt/live/[^/]*/fullchain|$dir/cert|" \
			-e "s|/etc/letsencrypt/live/[^/]*/privkey|$dir/key|" \
			-e "s|/var/log/nginx|$dir|" -e "s|@PREFIX@|$dir|" \
			nginx/inline.conf
		echo '}'
	} >"$dir/production.conf"
	openssl rand -hex 32 >"$dir/nodes.key"
	printf 'node a\nnode b 10.0.0.2\nnode c [fd00::3]:81\n' >"$dir/table"
	env -i IL_STATE_DIR="$dir" IL_TUNE_LIB_DIR="$dir/lib/inline" IL_NODE=a \
		IL_NODES="$dir/table" \
		IL_NODES_KEY_FILE="$dir/nodes.key" "$out/gcc/bin/ilctl" nginx \
		>"$dir/nodes.conf" || status=1
	sed -e 's|^#include /etc/inline|include '"$dir|" "$dir/production.conf" \
		>"$dir/several.conf"
	grep -q "^include $dir/nodes.conf" "$dir/several.conf" || status=1
	for name in with without production several; do
		nginx -t -e stderr -c "$dir/$name.conf" || status=1
	done
	rm -rf "$dir"
	return $status
}

# systemd_units: they can be loaded, and expose no more than README.md says.
systemd_units() {
	bin=/bin/true
	rm -f "$out"/units/*
	for unit in systemd/*.service systemd/*.socket systemd/*.timer \
		systemd/*.target; do
		sed -e "s|@PREFIX@/s*bin/[a-z-]*|$bin|" \
			-e '/^Documentation=/d' "$unit" >"$out/units/${unit##*/}"
	done
	for n in 0 1 2 3; do
		cp "$out/units/il-worker@.service" \
			"$out/units/il-worker@$n.service"
	done
	(cd "$out/units" && systemd-analyze verify ./*.service ./*.socket \
		./*.timer ./inline.target) 2>&1 |
		grep -v -e 'docker.service' -e 'modprobe@' | { ! grep .; } ||
		return 1
	for unit in il-fcgi:5 il-api:5 il-node:5 il-expire:5 \
		il-worker@:15 il-sandboxd:15 il-backup:15 \
		il-apparmor:15 il-volumes:15; do
		systemd-analyze security --offline=yes --threshold="${unit#*:}" \
			"$out/units/${unit%:*}.service" >"$out/exposure" 2>&1 || {
			tail -n 1 "$out/exposure"
			return 1
		}
	done
}

# apparmor_profile: it can be compiled; by apparmor_parser, where it is.
apparmor_profile() {
	! command -v apparmor_parser >/dev/null ||
		apparmor_parser --skip-kernel-load --skip-cache \
			systemd/apparmor/inline-api 2>&1 |
		{ ! grep -v 'Cache read/write disabled'; }
}

# systemd_users: systemd has nothing to say about our lines.
systemd_users() {
	root=$out/users
	rm -rf "$root"
	mkdir -p "$root/etc" "$root/usr/lib/sysusers.d"
	cp systemd/inline.sysusers "$root/usr/lib/sysusers.d/inline.conf"
	systemd-sysusers --root="$root" 2>&1 | { ! grep -v '^Creating '; }
}

[ $# -gt 0 ] || set -- gcc_errors clang_errors gcc_analyzer format tidy \
	check_cpp complexity light shell_scripts manuals nginx_configurations \
	systemd_units apparmor_profile systemd_users
for name; do
	step "$name"
done
tests/lint/counts.py
[ -z "$failed" ] || die "failed:$failed (the whole logs: $out)"
