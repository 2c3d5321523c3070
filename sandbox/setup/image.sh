#!/bin/sh
# The image that cells are started from.
#
#	image.sh	print the name of a usable image (the last line), after
#			getting it where needed: SANDBOX_IMAGE if it is there,
#			or can be pulled (SANDBOX_PULL_ON_STARTUP); otherwise
#			one made here from Debian's packages
#	image.sh --all	make all of our own images
#	image.sh NAME	make one: 3.11 3.11-scientific 3.13 3.13-scientific
#
# Our own are called inline-python:NAME and carry a hash of their recipe (this
# file and image-hook.sh): they are made once, and again when the recipe changes.
# The packages come from where this machine's apt gets them.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

docker=$(setting DOCKER_BINARY docker)
repository=inline-python

# recipe NAME: set $suite and $packages.
recipe() {
	case $1 in
	3.11*) suite=bookworm ;;
	3.13*) suite=trixie ;;
	*) die "no recipe for '$1'" ;;
	esac
	packages=python3,python3-pip,ca-certificates,tzdata,libc-bin,libstdc++6,busybox
	case $1 in
	*-scientific)
		packages=$packages,python3-numpy,python3-pandas,python3-scipy
		packages=$packages,python3-matplotlib,python3-sympy
		packages=$packages,python3-networkx,python3-openpyxl,python3-pil
		# One thread: a cell has one CPU, and fork is safe with it.
		packages=$packages,libopenblas0-serial
		;;
	esac
}

recipe_hash() {
	{ echo "$1" && cat sandbox/setup/image.sh sandbox/setup/image-hook.sh; } |
		sha256sum | cut -c 1-16
}

# made NAME HASH: our image is there, by this recipe.
made() {
	label=$("$docker" image inspect "$repository:$1" \
		--format '{{index .Config.Labels "inline.recipe"}}' 2>/dev/null) &&
		[ "$label" = "$2" ]
}

# The host's own lines for Debian, with this suite's name in them.
sources() {
	# shellcheck disable=SC2016 # names for apt
	apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
		--format '$(SITE) $(RELEASE) $(CODENAME)' 2>/dev/null |
		while read -r site release codename; do
			base=${codename%%-*}
			case $release in *backports*) continue ;; esac
			case $codename in "$base"*) ;; *) continue ;; esac
			printf 'deb %s %s%s main\n' "$site" "$suite" \
				"${codename#"$base"}"
		done | sort -u
}

# make NAME: unless it is there already.
make_image() {
	recipe "$1"
	hash=$(recipe_hash "$1")
	! made "$1" "$hash" || return 0
	DOCKER_BINARY=$docker sandbox/setup/deps.sh image
	say "making $repository:$1 from Debian's packages ($suite)"
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	sources >"$scratch/sources.list"
	apt-config dump --format '%F "%v";%n' |
		grep -E '^Acquire::(http|https|Check|Retries|ForceIP)' \
			>"$scratch/apt.conf" || :
	name=$1
	set -- "$scratch/sources.list"
	[ -s "$1" ] || shift # none known: where mmdebstrap looks by itself
	SOURCE_DATE_EPOCH=1767225600 mmdebstrap --quiet --variant=extract \
		--include="$packages" --aptopt="$scratch/apt.conf" \
		--aptopt='Apt::Install-Recommends "false"' \
		--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
		--extract-hook=sandbox/setup/image-hook.sh \
		--skip=check/empty,output/dev --format=tar \
		"$suite" "$scratch/image.tar" "$@" >&2
	# What mmdebstrap itself needed to the end (and where we get packages).
	tar --delete -f "$scratch/image.tar" ./etc/apt ./var/lib/apt \
		./var/lib/dpkg ./var/cache/apt
	old=$("$docker" image inspect --format '{{.Id}}' "$repository:$name" \
		2>/dev/null) || old=
	"$docker" import \
		--change "LABEL inline.recipe=$hash" \
		--change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' \
		--change 'ENV LANG=C.UTF-8' \
		--change 'CMD ["python3"]' \
		"$scratch/image.tar" "$repository:$name" >/dev/null
	[ -z "$old" ] || "$docker" rmi "$old" >/dev/null 2>&1 || :
	rm -rf "$scratch"
}

# For whoever asked for another image and cannot have it.
substitute() {
	make_image 3.11
	say "$1; using $repository:3.11 instead" \
		"(Debian's Python 3.11, the same commands; see sandbox/setup/README.md)"
	printf '%s\n' "$repository:3.11"
}

main() {
	image=$(setting SANDBOX_IMAGE python:3.11-alpine)
	pull=$(setting SANDBOX_PULL_ON_STARTUP 1)
	if "$docker" image inspect "$image" >/dev/null 2>&1; then
		printf '%s\n' "$image"
	elif [ "$pull" = 0 ]; then
		substitute "$image is not here and SANDBOX_PULL_ON_STARTUP is 0"
	elif made 3.11 "$(recipe_hash 3.11)"; then
		substitute "$image is not here, and could not be pulled last time" \
			"('$docker pull $image' tries again)"
	elif say "pulling $image" &&
		timeout 600 "$docker" pull "$image" </dev/null >&2; then
		printf '%s\n' "$image"
	else
		substitute "$image could not be pulled"
	fi
}

case ${1-} in
'') main ;;
--all)
	for each in 3.11 3.11-scientific 3.13 3.13-scientific; do
		make_image $each
		printf '%s\n' "$repository:$each"
	done
	;;
*)
	make_image "$1"
	printf '%s\n' "$repository:$1"
	;;
esac
