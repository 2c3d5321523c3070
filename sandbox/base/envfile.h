/* SPDX-License-Identifier: MIT */
#ifndef ENVFILE_H
#define ENVFILE_H

struct buf;
struct err;

/*
 * Files of KEY=VALUE lines, as systemd's EnvironmentFile= reads them: blank
 * lines and lines that start with '#' are skipped, blanks around key and value
 * are dropped, so is one pair of single or double quotes around the whole
 * value; nothing is expanded, and there are no continued lines.
 */

/* Called for each line in order; both texts are valid for as long as the text
 * that was parsed.  -1 with err filled stops. */
typedef int (*envfile_fn)(void *arg, const char *key, const char *value,
    struct err *err);

/* Walk a text, which is taken apart in place.  ERR_CONFIG "<name> line N: why"
 * when a line is malformed or has a NUL byte in it.  name: for errors only. */
int envfile_parse(struct buf *text, const char *name, envfile_fn fn, void *arg,
    struct err *err);

#endif
