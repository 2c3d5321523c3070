/* SPDX-License-Identifier: MIT */
#ifndef COPY_H
#define COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy_head.h"
#include "store.h"

struct err;

/*
 * What is done for files of the HTTP APIs, each in a process of its own, as in
 * task.h.
 */

/* A file that came to its place, or went from it. */
struct copy_change {
	char id[SNAPSHOT_FILE_LEN + 1];
	bool gone; /* it was seen to go */
};

struct copying {
	const char *folder; /* IL_API_FILES */
	int64_t ttl_ms;	    /* IL_API_FILES_SECONDS */
	const struct copy_change *changes;
	size_t count;
	bool full;	/* compare all of them, and sweep */
	size_t done;	/* result: so many of the changes */
	bool through;	/* result: to the end; a file may be left */
	int64_t copied; /* result */
};

/* Begin, and in any case end, with what is in the place of the snapshots as the
 * folder has it.  A file that is not in the folder, and was not seen to go,
 * keeps its copy until it is past its time. */
int copy_pass(struct store *store, struct copying *c, struct err *err);

/* Answer FRAME_COPY: the answer goes to sock whole, refusals included.  *begun:
 * something was sent.  0, 1: there is none, or -1; store NULL: and err is what
 * is wrong with it. */
int copy_serve(struct store *store, int sock, const char *id, int64_t ttl_ms,
    bool *begun, struct err *err);

#endif
