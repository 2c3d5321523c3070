/* SPDX-License-Identifier: MIT */
#ifndef CREATION_H
#define CREATION_H

#include <stdint.h>

#include "host.h"
#include "subprocess.h"

struct client;
struct err;

/*
 * Making a workspace: two sparse ext4 volumes in a draft folder, which gets its
 * name when both are complete.  A crash leaves a draft at most.
 */
struct volume_size {
	int64_t bytes; /* that files may hold */
	int64_t files; /* files and folders */
};

struct creation {
	struct host *host;
	struct client *client;
	char id[33];
	uint32_t uid; /* whose it is */
	char draft[64];
	struct volume_size sizes[2]; /* workspace, packages */
	char script[160];	     /* of debugfs */
	int step;
	struct subprocess process;
};

/* creation_done() is called once, later or at once. */
void creation_start(struct creation *c, struct host *host,
    struct client *client);
/* failure: NULL, or why there is none; ERR_CONFLICT: somebody else has made it
 * meanwhile (space.c). */
void creation_done(struct client *client, const struct err *failure);
/* Stop it; what was begun is removed. */
void creation_cancel(struct creation *c);

/* How large the volume must be so that files can hold so much: pure. */
int64_t volume_total_bytes(const struct volume_size *size);
int64_t volume_inodes(const struct volume_size *size);

#endif
