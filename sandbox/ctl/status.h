/* SPDX-License-Identifier: MIT */
#ifndef STATUS_H
#define STATUS_H

#include <stdbool.h>

struct condition_facts;
struct config;
struct db;
struct err;
struct job_counts;
struct lease_status;

/* What is asked of the programs that run, for `status` and the doctor. */

/* Whether a child of il-fcgi or il-api answers within three seconds. */
bool status_front_answers(const struct config *config, const char *name,
    struct err *err);
bool status_ask_broker(const struct config *config, struct lease_status *status,
    struct err *err);
/* No program of this state folder listens, no worker is there, and no `ilctl
 * run` holds the folder. */
bool status_nothing_runs(const struct config *config);
/* All facts, and the jobs counted; db: NULL where it does not open. */
void status_look(const struct config *config, struct db *db,
    struct condition_facts *facts, struct job_counts *counts);

#endif
