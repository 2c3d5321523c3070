#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

struct child;
struct config;
struct err;
struct standin;

/* Which programs `ilctl run` watches, in the order of their start. */
struct plan {
	struct child *children; /* heap */
	size_t count;
};

/* env_file: of -e, or NULL.  The programs are those beside this one. */
int plan_make(struct plan *plan, const struct config *config,
    const char *env_file, const struct standin *standin, struct err *err);
void plan_release(struct plan *plan);

#endif
