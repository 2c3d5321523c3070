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

/* How far il-sandboxd is from its end. */
enum phase {
	PHASE_SERVING,
	PHASE_DRAINING, /* nothing begins; leases go on to their end */
	PHASE_STOPPING, /* everything ends */
	PHASE_SWEEPING, /* what the engine still has is removed */
};

/*
 * What all parts of il-sandboxd share.  A part that changes has everything
 * looked over, once, from the loop: so no callback ever runs inside another,
 * and nothing is freed under the feet of its user.
 */
struct host {
	struct loop *loop;
	const struct config *config;
	char instance[17];   /* which broker's a container is */
	char *cells_dir;     /* absolute; a folder for each container */
	int base;	     /* descriptor of IL_BASE_DIR */
	int64_t started_s;   /* wall clock: makes names unique, */
	unsigned int serial; /* with the number of the last container */
	enum phase phase;
	struct engine *engine;
	struct images *images;
	struct ledger *ledger;
	struct pool *pool;
	struct uids *uids;
	struct lease_status_file *status; /* NULL: nothing is kept there */
	struct loop_timer *tell;
	struct api_packages_volume *api_packages; /* that are attached */
	size_t api_packages_count;
	bool masks; /* the last api cell could not hide parts of /proc */
	struct loop_timer *look;
	void (*look_over)(void *host); /* in il-sandboxd.c */
	int64_t look_ms;
};

/* Look everything over at that monotonic time, if not before; 0: soon
 * (pool.c). */
void host_look(struct host *host, int64_t at_ms);

/* Write down what il-fcgi is told of a host, now and every few seconds.  Call
 * it where something has changed that people are told of (status.c). */
void status_tell(void *arg);

#endif
