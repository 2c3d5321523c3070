/* SPDX-License-Identifier: MIT */
#ifndef SESSION_H
#define SESSION_H

#include <stdint.h>

struct db;
struct err;

/*
 * What a sandbox keeps in memory from run to run, as its owner was told last.
 * Whether it is there still, the broker knows.  Times are Unix seconds.
 */
struct session {
	int64_t started_at; /* 0: no session is on */
	int64_t kept_at;    /* an interpreter was kept then; 0: none */
	int64_t ended;	    /* why the last one has, to be told; 0: nothing */
	int64_t names;
	int64_t bytes;
};

/* All zeros when there was never one. */
int session_find(struct db *db, const char *sandbox, struct session *session,
    struct err *err);
int session_put(struct db *db, const char *sandbox,
    const struct session *session, struct err *err);

#endif
