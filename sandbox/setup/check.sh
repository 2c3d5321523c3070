#!/bin/sh
# check.sh fast|all|host|bench BUILD: run the tests, with everything installed and
# built.  They find the build as $BUILD and the image as $SANDBOX_IMAGE; nothing
# of the caller's configuration reaches them.  tests/README.md says more.
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

for key in $(env | sed -n 's/^\(IL_[A-Z_]*\|DISCORD_[A-Z_]*\)=.*/\1/p'); do
	unset "$key"
done
IL_ENV_FILE=/dev/null
if [ "$mode" != fast ]; then
	sandbox/setup/engine.sh
	SANDBOX_IMAGE=$(sandbox/setup/image.sh | tail -n 1)
	[ -n "$SANDBOX_IMAGE" ] || die "no image"
	export SANDBOX_IMAGE
fi
unset SANDBOX_PULL_ON_STARTUP IL_ENV_FILE

case $mode in
fast) tests=$(tests_of "$fast") ;;
all) tests=$(tests_of "$(find tests -mindepth 1 -maxdepth 1 -type d \
	! -name bench ! -name host -printf '%f\n')") ;;
bench) exec tests/bench/bench.py ;;
host) exec tests/host/check.py ;;
*) die "usage: check.sh fast|all|host|bench BUILD" ;;
esac
# shellcheck disable=SC2086 # a list of files without spaces
exec prove --failures --comments -j "${TEST_JOBS:-2}" --exec 'timeout --foreground -k 10 900' $tests \
	</dev/null
