/* SPDX-License-Identifier: MIT */
#ifndef ENVFILE_H
#define ENVFILE_H

#include <stddef.h>

struct err;

/*
 * Files of KEY=VALUE lines, as systemd's EnvironmentFile= reads them: blank
 * lines and lines that start with '#' are skipped, blanks around key and value
 * are dropped, so is one pair of single or double quotes around the whole
 * value; nothing is expanded, and there are no continued lines.
 */

/* Called for each line in order; both texts are valid during the call.  -1 with
 * err filled stops. */
typedef int (*envfile_fn)(void *arg, const char *key, const char *value,
    struct err *err);

/* Walk a text (len bytes, "\0" nowhere inside: ERR_CONFIG "<name> line N: why"
 * otherwise, or when a line is malformed).  name: for errors only. */
int envfile_parse(const char *text, size_t len, const char *name, envfile_fn fn,
    void *arg, struct err *err);

/* A whole small file as a text: heap, caller frees; *len may be NULL.  NULL
 * (and ERR_CONFIG) when it cannot be read or is over max bytes. */
char *envfile_read(const char *path, size_t max, size_t *len, struct err *err);

#endif
