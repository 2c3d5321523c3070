/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>

#include "../base/err.h"
#include "../protocol/lease.h"

struct config;

/*
 * Each check prints one or more lines.  A FAIL names what is wrong and the
 * command that mends it; a note is worth knowing and no fault.
 */
struct doctor {
	const struct config *config;
	bool broker; /* il-sandboxd answered */
	struct lease_status status;
	struct err refusal; /* why it did not */
	int failed;
};

/* Print a line. */
void doctor_say(const char *mark, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define doctor_good(...) doctor_say("ok    ", __VA_ARGS__)
#define doctor_note(...) doctor_say("note  ", __VA_ARGS__)
/* mend: a command, or NULL where there is none to type. */
void doctor_bad(struct doctor *d, const char *mend, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* doctor_host.c: the machine. */
void doctor_engine(struct doctor *d);
void doctor_images(struct doctor *d);
void doctor_loop(struct doctor *d);
void doctor_nginx(struct doctor *d);
void doctor_disk(struct doctor *d);
/* doctor_net.c: nginx, Discord, and its clock beside ours. */
void doctor_discord(struct doctor *d);
void doctor_http(struct doctor *d);

#endif
