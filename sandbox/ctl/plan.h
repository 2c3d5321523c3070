/* SPDX-License-Identifier: MIT */
#ifndef PLAN_H
#define PLAN_H

#include <limits.h>
#include <stddef.h>

struct accounts;
struct child;
struct config;
struct err;
struct standin;

/* Which programs `ilctl run` watches, in the order of their start. */
struct plan {
	struct child *children; /* heap */
	size_t count;
};

/* env_file: for the programs to read, or NULL.  The programs are those beside
 * this one; accounts are borrowed for as long as the plan lasts. */
int plan_make(struct plan *plan, const struct config *config,
    const char *env_file, const struct standin *standin,
    const struct accounts *accounts, int view_fd, struct err *err);
/* The folder that this program is in, and the others beside it. */
int plan_folder(char folder[static PATH_MAX], struct err *err);
void plan_release(struct plan *plan);

#endif
