/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>

#include "../base/err.h"
#include "../protocol/lease_status.h"

struct config;
struct db;

/*
 * Each check prints one or more lines.  A FAIL names what is wrong and the
 * command that mends it; a note is worth knowing and no fault.
 */
struct doctor {
	const struct config *config;
	bool broker; /* il-sandboxd answered */
	struct lease_status status;
	struct err refusal; /* why it did not */
	bool nothing;	    /* runs here: that is said once */
	int failed;
};

/* A line with its mark, as text or for --json.  d: it is a fault, or NULL;
 * mend: a command that mends or betters it, or NULL where there is none. */
void doctor_say(struct doctor *d, const char *mark, const char *mend,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define doctor_good(...) doctor_say(NULL, "ok", NULL, __VA_ARGS__)
#define doctor_note(...) doctor_say(NULL, "note", NULL, __VA_ARGS__)
#define doctor_bad(d, mend, ...) doctor_say(d, "FAIL", mend, __VA_ARGS__)

/* doctor_host.c: the machine. */
void doctor_engine(struct doctor *d);
void doctor_images(struct doctor *d);
void doctor_loop(struct doctor *d);
void doctor_nginx(struct doctor *d);
void doctor_disk(struct doctor *d);
/* nginx, Discord, and its clock beside ours. */
void doctor_discord(struct doctor *d);
void doctor_http(struct doctor *d);
/* What Discord knows of the application, where the bot's token is there. */
void doctor_application(struct doctor *d);

#endif
