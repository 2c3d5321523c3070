#!/bin/sh
# SPDX-License-Identifier: MIT
# nginx of compose.yaml: nginx/inline.conf, which is for production, with the
# paths and the name that there are here.  It needs no right but to reach the
# sockets; certificate and key are /tls/fullchain.pem and /tls/privkey.pem.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

for file in fullchain.pem privkey.pem; do
	[ -r "/tls/$file" ] || die "/tls/$file is not there, or not for user" \
		"$(id -u): install -o $(id -u) -m 400 (README.md)"
done
name=${INLINE_NAME:-_}
case $name in *[!A-Za-z0-9._-]*) die "INLINE_NAME: not a host's name" ;; esac
apis='\(never\)$' # nothing
[ "${INLINE_OPEN_APIS:-0}" = 0 ] || apis='#\(include .*/api\.conf;\)'
nodes='^(never)$'
if [ -n "${IL_NODES-}" ]; then # several nodes
	nodes='^#include /etc/inline/nodes\.conf'
	(umask 077 && bin/ilctl nginx >/tmp/nodes.conf)
fi

cat >/tmp/nginx.conf <<'END'
daemon off;
pid /tmp/nginx.pid;
error_log stderr crit;
worker_processes auto;
worker_rlimit_nofile 16384;
events {
	worker_connections 8192;
}
http {
	server_tokens off;
	default_type application/octet-stream;
	client_body_temp_path /tmp/body;
	fastcgi_temp_path /tmp/fastcgi;
	proxy_temp_path /tmp/proxy;
	uwsgi_temp_path /tmp/uwsgi;
	scgi_temp_path /tmp/scgi;
	include /tmp/inline.conf;
}
END
sed -e "s|@PREFIX@/lib/inline|$PWD/lib|" -e "s|/run/inline|$IL_STATE_DIR|" \
	-e 's|/etc/letsencrypt/live/inline\.example\.org|/tls|' \
	-e "s|inline\.example\.org|$name|" -e "s|$apis|\1|" \
	-e "s|$nodes|include /tmp/nodes.conf|" \
	-e 's|/var/log/nginx/error\.log|stderr|' \
	-e 's|/var/log/nginx/inline\.log|/dev/stdout|' \
	nginx/inline.conf >/tmp/inline.conf
exec nginx -e stderr -c /tmp/nginx.conf
