#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD SECONDS: let each fuzzer run for so long, beginning with its
# corpus.  What is found goes to BUILD/found; a new input that is worth keeping
# is added to the corpus by hand.
set -eu
cd "$(dirname "$0")"/../..
build=$1 seconds=$2
mkdir -p "$build/found"
for fuzzer in "$build"/tests/fuzz_*; do
	[ -x "$fuzzer" ] || continue
	name=${fuzzer##*/fuzz_}
	mkdir -p "$build/work/$name"
	echo "== $name"
	"$fuzzer" -max_total_time="$seconds" -max_len=65536 -print_final_stats=1 \
		-artifact_prefix="$build/found/$name-" "$build/work/$name" \
		"tests/fuzz/corpus/$name"
done
