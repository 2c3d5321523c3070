#!/bin/sh
# SPDX-License-Identifier: MIT
# Bring po/ up to the texts of the code: `make locale`.  What is new is added
# without a translation, what has changed is marked "fuzzy", what has gone is
# removed.  The template is not kept, it can be made at any time.
#
#	merge.sh --template	only print that
set -eu
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# extract NAME KEYWORD...: the marked texts of the files that stand on stdin
extract() {
	name=$1
	shift
	for keyword; do
		set -- "$@" "--keyword=$keyword"
		shift
	done
	xgettext --language=C --from-code=UTF-8 --files-from=- --no-location \
		--no-wrap --package-name=inline --keyword "$@" \
		--add-comments=Translators: --output="$work/$name" \
		2>"$work/errors" || { cat "$work/errors" >&2 && exit 1; }
}

# What stands in a row of a .def file needs no mark.  xgettext takes one
# argument of a macro at a time.
template() {
	find fcgi/discord sandbox/store sandbox/worker sandbox/ctl \
		-name '*.[ch]' | LC_ALL=C sort | extract 1.pot _ N_ Q_:1,2
	echo fcgi/discord/texts.def | extract 2.pot TEXT:2 REFUSAL:3
	echo sandbox/store/commands.def | extract 3.pot COMMAND:6 GROUP:2 \
		PATH:4 TEXT:5 INPUT:5 FILE:3 PAGE:2 SHARE:2 RECURSIVE:2 \
		VERSION:2 TIMEIT:2 KEEP:2 PACKAGE:2
	echo sandbox/store/commands.def | extract 4.pot PATH:1 TEXT:1 INPUT:1 \
		FILE:1 PAGE:1 SHARE:1 RECURSIVE:1 VERSION:1 TIMEIT:1 KEEP:1 \
		PACKAGE:1
	echo sandbox/worker/render/texts.def | extract 5.pot SAY:3 NOTE:2 \
		SLIP:2 STOPPED:2 REFUSED:4 FAILED:2 ENDED:2
	msgcat --use-first --no-wrap "$work"/[1-5].pot
}

if [ "${1-}" = --template ]; then
	template
	exit
fi
template >"$work/all.pot"
for po in sandbox/locale/po/*.po; do
	msgmerge --quiet --no-wrap --no-location --update --backup=none \
		--previous "$po" "$work/all.pot"
	msgattrib --no-wrap --no-obsolete -o "$po" "$po"
	sed -i '/^"POT-Creation-Date: /d;/^"Report-Msgid-Bugs-To: /d' "$po"
done
