/* SPDX-License-Identifier: MIT */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_packages_volume;
struct config;
struct engine;
struct images;
struct lease_status_file;
struct ledger;
struct loop;
struct loop_timer;
struct pool;
struct uids;

/* Life of il-sandboxd. */
enum phase {
	PHASE_SERVING,
	PHASE_DRAINING, /* nothing begins; leases go on until they end */
	PHASE_STOPPING, /* everything ends */
	PHASE_SWEEPING, /* remaining containers are removed */
};

/*
 * State that all parts of il-sandboxd share.  A part that changes schedules one
 * pass over everything, from the loop.  So no callback runs inside another, and
 * nothing is freed while it is used.
 */
struct host {
	struct loop *loop;
	const struct config *config;
	char instance[17];   /* label of this broker's containers */
	char *cells_dir;     /* absolute path; a folder for each container */
	int base;	     /* descriptor of IL_BASE_DIR */
	int64_t started_s;   /* wall clock; names are unique by it */
	unsigned int serial; /* and by the number of the last container */
	enum phase phase;
	struct engine *engine;
	struct images *images;
	struct ledger *ledger;
	struct pool *pool;
	struct uids *uids;
	struct lease_status_file *status; /* NULL: no such file */
	struct loop_timer *status_timer;
	struct api_packages_volume *api_packages; /* attached volumes */
	size_t api_packages_count;
	bool needs_masks; /* the last API cell could not hide parts of /proc */
	struct loop_timer *pass;
	void (*run_pass)(void *host); /* the pass: il-sandboxd.c */
	int64_t pass_ms;
};

/* Schedule a pass at that monotonic time, or earlier; 0: soon. */
void host_schedule(struct host *host, int64_t at_ms);

/* Write the status that il-fcgi reads, now and every few seconds.  Call it when
 * something has changed that people see. */
void status_publish(void *arg);

#endif
