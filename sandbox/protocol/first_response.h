/* SPDX-License-Identifier: MIT */
#ifndef FIRST_RESPONSE_H
#define FIRST_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;

/*
 * Handing a job's answer to the process of il-fcgi that still holds its
 * interaction, so that it becomes the first response: no "thinking…", no call
 * of Discord's API, and nothing that could overtake anything.  Each process of
 * il-fcgi listens on a SEQPACKET socket, STATE/answers/<index>.  A connection
 * is one question and one answer: the job's id and the JSON of the response;
 * whether that was sent.  il-fcgi passes the JSON on as it is.  Without JSON
 * the deferral is sent now: what has files can only be an edit.
 */
#define FIRST_RESPONSE_MAX 65536 /* bytes of JSON */

/* Where the index-th process listens; heap. */
char *first_response_path(const struct config *config, int64_t index);

/* ---- il-worker ---- */

enum first_response {
	FIRST_RESPONSE_SENT,   /* nginx has it */
	FIRST_RESPONSE_LATE,   /* a deferral was sent, now or before */
	FIRST_RESPONSE_NOBODY, /* perhaps none was sent: that process is gone or
				* knows nothing of it; err says more */
};

/* Both take timeout_ms at most.  The first returns a descriptor for the
 * second, or -1: nobody is there.  json: at most FIRST_RESPONSE_MAX bytes; "":
 * defer. */
int first_response_give(const char *path, int64_t job_id, const char *json,
    int timeout_ms, struct err *err);
enum first_response first_response_outcome(int fd, int timeout_ms,
    struct err *err);

/* ---- il-fcgi ---- */

/* Make the index-th socket (nonblocking) and its folder; -1: err says why. */
int first_response_listen(const struct config *config, size_t index,
    struct err *err);
/* Read what a worker has sent: the job's id and the JSON ("": defer), a string
 * in data, which has FIRST_RESPONSE_SIZE bytes.  NULL: not that. */
#define FIRST_RESPONSE_SIZE (FIRST_RESPONSE_MAX + 16)
const char *first_response_receive(int fd, char *data, int64_t *job_id);
void first_response_reply(int fd, enum first_response what);

#endif
