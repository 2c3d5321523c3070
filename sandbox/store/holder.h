/* SPDX-License-Identifier: MIT */
#ifndef HOLDER_H
#define HOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct db;
struct err;

/*
 * Who holds jobs: the number in their column claimed_by.  With SQLite there is
 * one host, the number is a worker's slot, and the file lock of that slot says
 * whether its worker lives.  With PostgreSQL there may be many hosts: a worker
 * takes a number that nobody had before, and its session holds the lock of that
 * number.  A worker that was cut off gets its number back if it comes within a
 * minute; after that it has lost it, and what it says of its jobs matches no
 * row.
 */

/* The worker's number from now on; called before each claim, as a new
 * connection may need a new one. */
int holder_take(struct db *db, const char *node, int64_t slot, int64_t *holder,
    struct err *err);

/* Whether the database, rather than a file's lock, says who lives. */
bool holder_is_shared(const struct db *db);
/* Take over what `holder` left to our own number, if it is dead: no session has
 * had its lock for a minute by the database's clock, or it had our node and
 * slot before us, or the number is nobody's any more.  1: it lives, or has not
 * been away for long enough. */
int holder_take_over(struct db *db, const char *node, int64_t slot,
    int64_t holder, struct err *err);

/* ---- waking workers on other hosts; nothing with SQLite ---- */

/* There are new jobs for another home (node.h).  Nothing is waited for. */
void holder_notify(struct db *db, int64_t home);
/* From now on holder_heard() tells of those for ours. */
int holder_listen(struct db *db, struct err *err);
/* Whether it was told since the last call: look for jobs.  Otherwise *fd is
 * readable when there is something to hear; -1: wait for something else. */
bool holder_heard(struct db *db, int *fd);
/* A job that runs at another home is to be cancelled; there holder_heard() and
 * then this tell of it: its id, 0: no more. */
void holder_cancel(struct db *db, int64_t home, int64_t job_id);
int64_t holder_heard_cancel(struct db *db);

/* ---- the first response, where a front elsewhere holds it ---- */

/* il-worker: JSON for the front that holds a job.  Nobody hears whether one
 * does. */
int holder_respond(struct db *db, int64_t job, const char *json,
    struct err *err);
/* il-fcgi, in the transaction that makes a job for another home: what the
 * worker there responds is heard from the commit on, if the connection lasts.
 * 1: too many are waited for. */
int holder_await(struct db *db, const char *token, struct err *err);
/* No response is waited for any more. */
void holder_await_none(struct db *db);
/* One that has come: its job, and the JSON, which is valid until the next call.
 * 0: none; *fd is readable when there is something to hear; -1: there will be
 * nothing. */
int64_t holder_response(struct db *db, int *fd, const char **json);

#endif
