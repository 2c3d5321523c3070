/* SPDX-License-Identifier: MIT */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>

struct config;
struct err;

/* The local stand-in for Discord, when no public key is configured. */
struct standin {
	char *script;	/* heap */
	char *key_file; /* heap */
	long port;	/* its own, on loopback; 0: there is none */
};

/*
 * Find it, choose its port, and put its keys into our environment, from which
 * the other programs take them.  With a public key configured there is none.
 */
int standin_prepare(struct standin *standin, const struct config *config,
    struct err *err);
void standin_release(struct standin *standin);
/* The interpreter that it runs on: the distribution's, which has the packages
 * that `make deps` installs, before another one on PATH. */
const char *standin_python(void);
/* Whether nobody listens on this TCP port of 127.0.0.1. */
bool standin_port_is_free(long port);

#endif
