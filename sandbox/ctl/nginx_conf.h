/* SPDX-License-Identifier: MIT */
#ifndef NGINX_CONF_H
#define NGINX_CONF_H

#include <stddef.h>

struct buf;
struct config;
struct err;

/* What is put into the template (nginx/README.md). */
struct nginx_conf {
	const char *state_dir; /* absolute */
	const char *lib_dir;   /* absolute */
	long http_port;
	long standin_port; /* 0: there is no stand-in */
};

/* Put the values into the template's text.  ERR_CONFIG when a value cannot be
 * written down in nginx's syntax. */
int nginx_conf_fill(struct buf *out, const char *template, size_t len,
    const struct nginx_conf *conf, struct err *err);
/* Fill lib_dir's nginx.conf.in into <state_dir>/nginx.conf, whole or not at
 * all. */
int nginx_conf_write(const struct config *config, const struct nginx_conf *conf,
    struct err *err);

#endif
