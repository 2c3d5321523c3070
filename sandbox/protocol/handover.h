/* SPDX-License-Identifier: MIT */
#ifndef HANDOVER_H
#define HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;

/* Messages between il-fcgi and il-worker besides the database. */

/* ---- wake-ups ---- */

/*
 * Reports to the workers that there are jobs: the FIFO STATE/wake.  il-fcgi
 * writes a byte for each job that it has committed and answered.  Nothing
 * depends on it but the delay; a job that is committed is found.  il-fcgi calls
 * wake_workers(), and il-worker the other functions.
 */

struct wake {
	char *path; /* borrowed */
	int fd;	    /* -1: not open; the owner closes it */
};

/* Never blocks and never fails: a full FIFO wakes them anyway, and where nobody
 * reads nobody sleeps. */
void wake_workers(struct wake *wake, size_t count);

/* Open it (making it when it is missing) for reading and writing, so that it
 * never shows an end of file.  -1: err says why. */
int wake_fifo_open(const char *path, struct err *err);
/* A descriptor to wait on for the FIFO and for stop_fd. */
int wake_wait_open(int fd, int stop_fd, struct err *err);
/* Wait for a byte of the FIFO, and take it, so that another worker wakes for
 * the rest; for stop_fd; for timeout_ms. */
void wake_wait(int wait_fd, int fd, int timeout_ms);
/* There is work for `count` others. */
void wake_others(int fd, int count);

/* ---- cancelled jobs ---- */

/*
 * Cancelling a job that is not over: an empty file STATE/cancels/<job id>, made
 * by il-fcgi when its owner asks for it.  Workers watch the folder: the one
 * that runs the job ends it now, or never begins it.  The end of the job
 * removes the file.  The file stays where the job was over or its worker was
 * killed; a sweep removes it when no job can be so old.  il-fcgi and ilctl call
 * cancel_ask(), and il-worker the other functions.
 */
#define CANCEL_KEEP_SECONDS 1800

/* Ask for it.  Twice is as good as once. */
int cancel_ask(const struct config *config, int64_t job_id, struct err *err);
/* Make the folder, if it is missing, and watch it: a descriptor that becomes
 * readable when something is asked for; -1: err says why. */
int cancel_watch(const struct config *config, struct err *err);
/* Forget what made it readable. */
void cancel_heard(int watch_fd);
/* Is this job to be cancelled? */
bool cancel_is_asked(const struct config *config, int64_t job_id);
/* It is over, cancelled or not. */
void cancel_forget(const struct config *config, int64_t job_id);
/* Remove those that nobody needs any more. */
void cancel_sweep(const struct config *config);

/* ---- first responses ---- */

/*
 * Handing a job's answer to the process of il-fcgi that still holds its
 * interaction, so that it becomes the first response.  Each process of il-fcgi
 * listens on a SEQPACKET socket, STATE/answers/<index>.  A connection is one
 * question and one answer: the job's id and the JSON of the response; whether
 * that was sent.  Without JSON the deferral is sent now.  il-worker calls the
 * first three functions, and il-fcgi the last three.
 */
#define FIRST_RESPONSE_MAX 65536 /* bytes of JSON */

/* Where the index-th process listens; heap. */
char *first_response_path(const struct config *config, int64_t index);

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

/* Make the index-th socket (nonblocking) and its folder; -1: err says why. */
int first_response_listen(const struct config *config, size_t index,
    struct err *err);
/* Read what a worker has sent: the job's id and the JSON ("": defer), a string
 * in data, which has FIRST_RESPONSE_SIZE bytes.  NULL: not that. */
#define FIRST_RESPONSE_SIZE (FIRST_RESPONSE_MAX + 16)
const char *first_response_receive(int fd, char *data, int64_t *job_id);
void first_response_reply(int fd, enum first_response what);

#endif
