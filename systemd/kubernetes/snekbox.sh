#!/bin/sh
# SPDX-License-Identifier: MIT
# The sidecar's beginning: nginx, with the token that the node asks for, if any.
set -eu

token=/etc/inline/snekbox-token/token
if [ -e $token ]; then
	umask 077
	# shellcheck disable=SC2016 # a variable of nginx's
	printf 'set $authorization "Bearer %s";\n' "$(cat $token)" \
		>/tmp/token.conf
fi
exec nginx -e stderr -c /etc/inline/snekbox/nginx.conf
