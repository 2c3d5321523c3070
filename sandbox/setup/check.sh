#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh check|fast|container|nodes|kubernetes|host|ways|bench|coverage BUILD: run
# the tests, with everything installed and built.  They find the build as $BUILD
# and the image as $SANDBOX_IMAGE (kubernetes has neither); nothing of the
# caller's configuration reaches them.  Those that say what a cell is are
# run a second time, on SANDBOX_IMAGE_MUSL, where there is such an image.  What a
# red file printed stands at the end, whole.  With TEST_AGAIN=1 red files are run
# once more, one at a time, and those that are red again fail.
# tests/README.md says more.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

mode=$1
mkdir -p "$2"
BUILD=$(realpath "$2")
PYTHONDONTWRITEBYTECODE=1
HARNESS_RULESFILE=tests/rules.yml
export BUILD PYTHONDONTWRITEBYTECODE HARNESS_RULESFILE

# Folders of tests/ whose tests need neither engine nor nginx.
fast="fuzz lint standin store unit"

# Every test of $1, a list of folders: programs that `make tests` built, and
# *.t files.
tests_of() {
	for folder in $1; do
		case $folder in
		unit) find "$BUILD/tests" -name 'test_*' -type f -perm -u+x ;;
		fuzz) find "$BUILD/tests" -name 'fuzz_*' -type f -perm -u+x ;;
		esac
		[ ! -d "tests/$folder" ] ||
			find "tests/$folder" -name '*.t' -type f
	done | LC_ALL=C sort
}

# Set $musl to the image for the second time: the one that is asked for, or ours
# where it has been made, or none.
find_musl() {
	musl=${SANDBOX_IMAGE_MUSL-inline-python:3.11-musl}
	if [ -n "${SANDBOX_IMAGE_MUSL-}" ]; then
		"$(setting DOCKER_BINARY docker)" image inspect "$musl" \
			>/dev/null || die "SANDBOX_IMAGE_MUSL: no image '$musl'"
	elif [ -n "$musl" ] && ! sandbox/setup/image-make.sh --made 3.11-musl; then
		musl=
		say "no image with musl is here ('make image NAME=3.11-musl' makes one):" \
			"cells are tested on one C library only"
	fi
}

# prove_all ROUND FILE...: run them; what they print is kept under $said/ROUND.
prove_all() {
	round=$1
	shift
	rm -rf "${said:?}/$round"
	mkdir -p "$said/$round"
	PERL_TEST_HARNESS_DUMP_TAP=$said/$round prove --merge --failures \
		--state=save --statefile="$said/$round/.state" \
		-j "${TEST_JOBS:-$(($(nproc) + 2))}" \
		--exec tests/one.sh "$@" </dev/null
}

# red ROUND: the files that were red in it.
red() {
	prove --dry --state=failed --statefile="$said/$1/.state"
}

# show ROUND: what its red files printed.
show() {
	for file in $(red "$1"); do
		printf '\n---- %s (%s) ----\n' "${file#"$BUILD/"}" "$1"
		cat "$said/$1/$file" || :
	done
}

# prove_round ROUND FILE...: run them, and the red ones again where that is
# asked for; add to $rounds and to $failed, or to $alone.
prove_round() {
	! prove_all "$@" || return 0
	rounds="$rounds $1"
	failed="$failed $1"
	# shellcheck disable=SC2046 # lists of files without spaces
	set -- "$1" $(red "$1")
	[ "${TEST_AGAIN:-0}" = 1 ] && [ $# -gt 1 ] || return 0
	again=$1-again
	shift
	say "once more, one at a time: $*"
	if TEST_JOBS=1 prove_all "$again" "$@"; then
		failed=${failed% *}
		alone="$alone $*"
	else
		rounds="$rounds $again"
	fi
}

# finish: show what was red, then say which that was, and end.
finish() {
	for round in $rounds; do
		show "$round"
	done
	for round in $rounds; do
		# shellcheck disable=SC2046 # lists of files without spaces
		say "red ($round):" $(red "$round")
	done
	[ -z "$alone" ] || say "red beside others, green alone:$alone"
	[ -z "$failed" ] || exit 1
}

for key in $(env | sed -n 's/^\(IL_[A-Z_]*\|DISCORD_[A-Z_]*\)=.*/\1/p'); do
	unset "$key"
done
IL_ENV_FILE=/dev/null
case $mode in
fast | coverage | kubernetes) ;;
*)
	sandbox/setup/engine.sh
	[ "$mode" != check ] || find_musl
	SANDBOX_IMAGE=$(sandbox/setup/image.sh | tail -n 1)
	[ -n "$SANDBOX_IMAGE" ] || die "no image"
	export SANDBOX_IMAGE
	;;
esac
unset SANDBOX_PULL_ON_STARTUP SANDBOX_IMAGE_MUSL IL_ENV_FILE

said=$BUILD/said
failed=
rounds=
alone=
# shellcheck disable=SC2046 # lists of files without spaces
case $mode in
fast)
	prove_round fast $(tests_of "$fast")
	finish
	;;
check)
	prove_round all $(tests_of "$(find tests -mindepth 1 -maxdepth 1 \
		-type d ! -name bench ! -name container ! -name nodes \
		! -name kubernetes ! -name host ! -name ways -printf '%f\n')")
	if [ -n "$musl" ]; then
		say "once more on musl ($musl): cells"
		SANDBOX_IMAGE=$musl
		prove_round musl $(tests_of cell) tests/broker/names.t
	fi
	finish
	;;
container)
	systemd/container/image.sh inline
	systemd/container/image.sh inline-prometheus prometheus.Dockerfile
	prove_round container $(tests_of container)
	finish
	;;
nodes) exec tests/nodes/check.py ;;
kubernetes) # each installs a release of its own
	TEST_JOBS=1
	prove_round kubernetes $(tests_of kubernetes)
	finish
	;;
bench) exec tests/bench/bench.py ;;
coverage)
	sandbox/setup/check.sh fast "$2" || :
	exec gcovr --root . --object-directory "$2" --exclude 'tests/.*' \
		--exclude 'build/.*' --sort-percentage --print-summary
	;;
host) exec tests/host/check.py ;;
ways)
	prove_round ways $(tests_of ways)
	finish
	;;
*) die "usage: check.sh check|fast|container|nodes|kubernetes|host|ways|bench|coverage BUILD" ;;
esac
