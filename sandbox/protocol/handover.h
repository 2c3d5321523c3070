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
 * Telling the workers that there are jobs: the FIFO STATE/wake.  il-fcgi writes
 * a byte for each job that it has committed and answered.  Nothing depends on
 * it but the delay; a job that is committed is found.
 *
 * All workers wait for it, and the kernel wakes one of those that wait
 * (EPOLLEXCLUSIVE): with all of them awake for each job, three would query the
 * database for nothing, and lock it for the one that has the job.  A worker
 * that wakes takes one byte, wakes another worker when there were more, and
 * then claims until the queue is empty.  Bytes and awake workers together are
 * never fewer than queued jobs, except when a worker dies between its byte and
 * its claim; for that workers also query the queue every few seconds.
 */

/* il-fcgi: */

struct wake {
	char *path; /* borrowed */
	int fd;	    /* -1: not open; the owner closes it */
};

/* Never blocks and never fails: a full FIFO wakes them anyway, and where nobody
 * reads nobody sleeps. */
void wake_workers(struct wake *wake, size_t count);

/* il-worker: */

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
 * by il-fcgi when its owner asks for it.  Workers watch the folder, so that the
 * one that runs the job ends it now; one that has not begun it never does.
 * The end of the job removes the file.  A file stays where its job was over or
 * its worker was killed; a sweep removes it when no job can be so old.
 */
#define CANCEL_KEEP_SECONDS 1800

/* il-fcgi: */

/* Ask for it.  Twice is as good as once. */
int cancel_ask(const struct config *config, int64_t job_id, struct err *err);

/* il-worker: */

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

/* il-worker: */

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

/* il-fcgi: */

/* Make the index-th socket (nonblocking) and its folder; -1: err says why. */
int first_response_listen(const struct config *config, size_t index,
    struct err *err);
/* Read what a worker has sent: the job's id and the JSON ("": defer), a string
 * in data, which has FIRST_RESPONSE_SIZE bytes.  NULL: not that. */
#define FIRST_RESPONSE_SIZE (FIRST_RESPONSE_MAX + 16)
const char *first_response_receive(int fd, char *data, int64_t *job_id);
void first_response_reply(int fd, enum first_response what);

#endif
