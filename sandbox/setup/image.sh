#!/bin/sh
# SPDX-License-Identifier: MIT
# The images that cells are started from.
#
#	image.sh	print the name of a usable image (the last line), after
#			getting it where needed: SANDBOX_IMAGE if it is there,
#			or can be pulled (SANDBOX_PULL_ON_STARTUP); otherwise
#			one made here from Debian's packages
#	image.sh --interpreters IMAGE
#			the same for each image of SANDBOX_IMAGES: print what to
#			set it to.  Where it is not set: IMAGE, which is usable,
#			and beside it Python 3.11, 3.13 and 3.14, of which 3.14
#			leads where SANDBOX_IMAGE is not set either
#	image.sh --all	make all of our own images
#	image.sh NAME	make one: 3.11 3.11-scientific 3.13 3.13-scientific 3.14,
#			or 3.11-musl for tests
#
# Our own are called inline-python:NAME; image-make.sh makes them.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

docker=$(setting DOCKER_BINARY docker)
repository=inline-python

# version IMAGE: the one that its tag begins with, as the programs name it.
version() {
	expr "${1##*/}" : '[^:@]*:\([0-9][0-9.]*[0-9]\)' || echo default
}

# provide IMAGE SUBSTITUTE: set $provided to IMAGE, which is there now, or to our
# own image of the name SUBSTITUTE; fail where there is none.
provide() {
	provided=$1
	! "$docker" image inspect "$1" >/dev/null 2>&1 || return 0
	case $1 in
	"$repository":*)
		sandbox/setup/image-make.sh "${1#*:}"
		return
		;;
	esac
	if [ "$pull" = 0 ]; then
		why="is not here and SANDBOX_PULL_ON_STARTUP is 0"
	elif [ -n "$2" ] && sandbox/setup/image-make.sh --made "$2"; then
		why="is not here, and could not be pulled last time"
		why="$why ('$docker pull $1' tries again)"
	elif say "pulling $1" &&
		timeout 600 "$docker" pull "$1" </dev/null >&2; then
		return 0
	else
		why="could not be pulled"
	fi
	[ -n "$2" ] || {
		say "$1 $why"
		return 1
	}
	sandbox/setup/image-make.sh "$2" || return
	provided=$repository:$2
	say "$1 $why; using $provided instead" \
		"(Debian's Python ${2%%-*}, the same commands; see sandbox/setup/README.md)"
}

# substitute VERSION: the name of ours that has it, if any.
substitute() {
	case $1 in
	3.11 | 3.11.*) echo 3.11 ;;
	3.13 | 3.13.*) echo 3.13 ;;
	3.14 | 3.14.*) echo 3.14 ;;
	esac
}

# One that cannot be had is left out: its name promises a version.
interpreters() {
	list=
	for entry in $(echo "$1" | tr , ' '); do
		name=${entry%%=*}
		if provide "${entry#*=}" \
			"$(substitute "$(version "${entry#*=}")")"; then
			list=$list,$name=$provided
		else
			say "without it there is no interpreter '$name'"
		fi
	done
	[ -n "$list" ] || die "no image of SANDBOX_IMAGES can be had"
	printf '%s\n' "${list#,}"
}

# interpreters_beside IMAGE: what is on offer where nobody has said.
interpreters_beside() {
	all=$(version "$1")=$1
	for each in 3.11 3.13 3.14; do
		case $all in
		$each=* | $each.*) ;;
		*) all=$all,$each=python:$each-alpine ;;
		esac
	done
	# The clients of /eval want the newest, unless the operator has said.
	newest=${all##*,}
	[ -n "$(setting SANDBOX_IMAGE '')" ] || all=$newest,${all%,*}
	printf '%s\n' "$all"
}

pull=$(setting SANDBOX_PULL_ON_STARTUP 1)
case ${1-} in
'')
	image=$(setting SANDBOX_IMAGE python:3.11-alpine)
	like=$(substitute "$(version "$image")")
	provide "$image" "${like:-3.11}"
	printf '%s\n' "$provided"
	;;
--interpreters)
	interpreters "$(setting SANDBOX_IMAGES "$(interpreters_beside "$2")")"
	;;
--all)
	for each in 3.11 3.11-scientific 3.13 3.13-scientific 3.14; do
		sandbox/setup/image-make.sh $each
		printf '%s\n' "$repository:$each"
	done
	;;
*)
	sandbox/setup/image-make.sh "$1"
	printf '%s\n' "$repository:$1"
	;;
esac
