/* SPDX-License-Identifier: MIT */
#ifndef COPY_COMPARE_H
#define COPY_COMPARE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

/* What copies of files there are, whosever they are; zeroed it is empty. */
struct compared {
	struct remote *remotes; /* by their ids */
	size_t count;
	size_t room;
};

/* Bits: the parts of a file of that size. */
uint32_t copy_mask(int64_t size);

/* List them. */
int compare_list(struct compared *there, struct store *store, struct err *err);
void compare_release(struct compared *there);

/* How is the copy of a file that is here?  It is not swept any more.
 * COMPARE_USED: its head tells of a use that was so long before the last one
 * that this matters. */
enum compare { COMPARE_MISSING, COMPARE_USED, COMPARE_SAME };
enum compare compare_file(struct compared *there, const char *id, int64_t size,
    int64_t used_ms, int64_t ttl_ms);
/* The next one that is past its time, and what it consists of beside the head;
 * *at starts at 0.  NULL: that was all. */
const char *compare_old(const struct compared *there, size_t *at,
    int64_t now_ms, int64_t ttl_ms, uint32_t *parts);

#endif
