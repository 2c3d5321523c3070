#!/bin/sh
# SPDX-License-Identifier: MIT
# Build an image: image.sh [NAME [DOCKERFILE]], `inline` from Dockerfile unless
# they are named.
#
# It stands on BASE (debian:12-slim), which is pulled.  Where no registry
# answers, the same is made from Debian's packages, from where this machine's
# apt gets them, and kept as inline-debian:12.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

docker=$(setting DOCKER_BINARY docker)
own=inline-debian:12

# Where apt gets Debian 12 from, and how.
make_base() {
	sandbox/setup/deps.sh image
	say "making $own from Debian's packages"
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# shellcheck disable=SC2016 # names for apt
	apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
		--format '$(SITE) $(RELEASE) $(CODENAME)' 2>/dev/null |
		while read -r site release codename; do
			case $release in *backports*) continue ;; esac
			printf 'deb %s bookworm%s main\n' "$site" \
				"${codename#"${codename%%-*}"}"
		done | sort -u >"$scratch/sources.list"
	apt-config dump --format '%F "%v";%n' |
		grep -E '^Acquire::(http|https|Check|Retries|ForceIP)' \
			>"$scratch/apt.conf" || :
	set -- "$scratch/sources.list"
	[ -s "$1" ] || shift # none known: where mmdebstrap looks by itself
	mmdebstrap --quiet --variant=apt --include=ca-certificates \
		--aptopt="$scratch/apt.conf" \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--skip=check/empty,output/dev --format=tar \
		bookworm "$scratch/base.tar" "$@" >&2
	"$docker" import --change 'CMD ["sh"]' "$scratch/base.tar" "$own" >/dev/null
	rm -rf "$scratch"
}

# Set $base to an image that is here.
find_base() {
	base=${BASE:-debian:12-slim}
	! "$docker" image inspect "$base" >/dev/null 2>&1 || return 0
	if [ -n "${BASE-}" ]; then
		"$docker" pull "$base" </dev/null >&2
	elif "$docker" image inspect "$own" >/dev/null 2>&1; then
		base=$own
	elif ! timeout 600 "$docker" pull "$base" </dev/null >&2; then
		make_base
		base=$own
	fi
}

name=${1:-inline}
find_base
# The classic builder and BuildKit take the same file.
"$docker" build --build-arg "BASE=$base" --tag "$name" \
	--file "systemd/container/${2:-Dockerfile}" . >&2
printf '%s\n' "$name"
