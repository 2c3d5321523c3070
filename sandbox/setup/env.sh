# SPDX-License-Identifier: MIT
# Sourced by the other scripts: settings as the programs read them.
# shellcheck shell=sh

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# setting KEY DEFAULT: from the environment, otherwise from the env file (the
# last line wins, as in the programs), otherwise the default.  Nothing is
# expanded and nothing is run.
setting() {
	value=$(printenv "$1") || {
		file=${IL_ENV_FILE:-.env}
		value=
		[ ! -f "$file" ] || value=$(sed -n \
			"s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*//p" "$file" |
			sed -e 's/[[:space:]]*$//' -e "s/^'\(.*\)'\$/\1/" \
			-e 's/^"\(.*\)"$/\1/' | tail -n 1)
	}
	printf '%s\n' "${value:-$2}"
}

# say TEXT...: to the operator.
say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	say "$@"
	exit 1
}
