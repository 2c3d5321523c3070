/* SPDX-License-Identifier: MIT */
#ifndef OTHERS_H
#define OTHERS_H

#include <stddef.h>
#include <stdint.h>

struct config;
struct db;
struct held;

/* Other hosts of the same database (store/node.h); with SQLite there are none.
 */

/* Which one we are, once our workers have told the database; not asked again
 * before *retry_ms (monotonic). */
void others_check(struct db *db, const struct config *config,
    int64_t *retry_ms);
/* Jobs with these homes are committed: wake the workers elsewhere, once each.
 */
void others_notify(struct db *db, const int64_t *homes, size_t count);
/* Give the responses that workers there have brought; after each use of db,
 * which may be NULL, as what has come with an answer is no event. */
void others_hear(struct db *db, struct held *held);
/* Have a job there cancelled. */
void others_cancel(struct db *db, int64_t home, int64_t job_id);

#endif
