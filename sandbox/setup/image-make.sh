#!/bin/sh
# SPDX-License-Identifier: MIT
# Make one of our own images from Debian's packages, unless it is there already:
#
#	image-make.sh NAME		3.11 3.11-scientific 3.13 3.13-scientific
#					3.14; 3.11-musl, which is for tests
#	image-make.sh --made NAME	is it there, by this recipe?
#
# They are called inline-python:NAME and carry a hash of their recipe, which is
# this file, image-hook.sh or image-musl.sh, and image-wheels.txt: they are made once, and again
# when the recipe changes.  The packages come from where this machine's apt gets
# them.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

docker=$(setting DOCKER_BINARY docker)
repository=inline-python

# recipe NAME: set $suite, $packages and $finish, the script that does the rest.
recipe() {
	case $1 in
	3.11*) suite=bookworm ;;
	3.13*) suite=trixie ;;
	3.14*) suite=forky ;; # testing, until it is released
	*) die "no recipe for '$1'" ;;
	esac
	finish=sandbox/setup/image-hook.sh
	packages=python3,python3-pip,ca-certificates,tzdata,libc-bin,libstdc++6,busybox
	# What the interpreter's clients write for: bash and GNU's tools.
	packages=$packages,bash,coreutils,findutils,grep,sed,gawk,diffutils
	packages=$packages,tar,gzip,bzip2,xz-utils
	case $1 in
	*-scientific)
		packages=$packages,python3-numpy,python3-pandas,python3-scipy
		packages=$packages,python3-matplotlib,python3-sympy
		packages=$packages,python3-networkx,python3-openpyxl,python3-pil
		packages=$packages,python3-sklearn,python3-skimage
		packages=$packages,python3-seaborn,python3-xgboost
		packages=$packages,python3-pypdf,python3-docx,python3-pydantic
		packages=$packages,python3-requests,python3-bs4,python3-lxml
		packages=$packages,python3-matplotlib-venn
		# Chinese, Japanese and Korean in figures, in 5 MB.
		packages=$packages,fonts-wqy-microhei
		# What the wheels of image-wheels.txt need.
		packages=$packages,python3-fonttools,python3-defusedxml
		packages=$packages,python3-cryptography,python3-xlsxwriter
		packages=$packages,python3-charset-normalizer
		packages=$packages,python3-typing-extensions
		# One thread: a cell has one CPU, and fork is safe with it.
		packages=$packages,libopenblas0-serial
		;;
	*-musl) finish=sandbox/setup/image-musl.sh ;;
	esac
}

recipe_hash() {
	recipe "$1"
	{ echo "$1" && cat sandbox/setup/image-make.sh "$finish" \
		sandbox/setup/image-wheels.txt; } |
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

# What Debian has not, or only with a hundred libraries for windows and films:
# wheels whose hashes are known, into $scratch/wheels.
fetch_wheels() {
	sandbox/setup/deps.sh wheels
	say "fetching wheels for it"
	machine=$(uname -m)
	(cd "$scratch/wheels" && /usr/bin/python3 -m pip download --quiet \
		--disable-pip-version-check --no-deps --require-hashes \
		--only-binary :all: --python-version "${1%%-*}" \
		--platform "manylinux2014_$machine" \
		--platform "manylinux_2_17_$machine" \
		--requirement "$OLDPWD/sandbox/setup/image-wheels.txt" >&2)
}

# Debian's packages, unpacked and finished, as $scratch/image.tar.
unpack_packages() {
	apt-config dump --format '%F "%v";%n' |
		grep -E '^Acquire::(http|https|Check|Retries|ForceIP)' \
			>"$scratch/apt.conf" || :
	set -- "$scratch/sources.list"
	[ -s "$1" ] || shift # none known: where mmdebstrap looks by itself
	SOURCE_DATE_EPOCH=1767225600 mmdebstrap --quiet --variant=extract \
		--include="$packages" --aptopt="$scratch/apt.conf" \
		--aptopt='Apt::Install-Recommends "false"' \
		--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
		--extract-hook="copy-in $scratch/wheels /tmp" \
		--extract-hook="$finish" \
		--skip=check/empty,output/dev --format=tar \
		"$suite" "$scratch/image.tar" "$@" >&2
	# What mmdebstrap itself needed to the end (and where we get packages).
	tar --delete -f "$scratch/image.tar" ./etc/apt ./var/lib/apt \
		./var/lib/dpkg ./var/cache/apt
}

# make NAME: unless it is there already.
make_image() {
	hash=$(recipe_hash "$1")
	recipe "$1"
	! made "$1" "$hash" || return 0
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	case $1 in
	*-musl)
		sandbox/setup/deps.sh musl
		say "making $repository:$1 from Debian's sources, in some minutes"
		sources >"$scratch/sources.list"
		"$finish" "${1%-musl}" "$scratch"
		;;
	*)
		DOCKER_BINARY=$docker sandbox/setup/deps.sh image
		say "making $repository:$1 from Debian's packages ($suite)"
		mkdir "$scratch/wheels"
		case $1 in *-scientific) fetch_wheels "$1" ;; esac
		sources >"$scratch/sources.list"
		unpack_packages
		;;
	esac
	name=$1
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

case ${1-} in
--made) made "$2" "$(recipe_hash "$2")" ;;
?*) make_image "$1" ;;
*) die "usage: image-make.sh [--made] NAME" ;;
esac
