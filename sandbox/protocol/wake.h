/* SPDX-License-Identifier: MIT */
#ifndef WAKE_H
#define WAKE_H

#include <stddef.h>

struct err;

/*
 * Telling the workers that there are jobs: the FIFO STATE/wake.  il-fcgi writes
 * a byte for each job that it has committed and answered.  Nothing depends on
 * it but the delay; a job that is committed is found.
 *
 * All workers wait for it, and the kernel wakes one of those that wait
 * (EPOLLEXCLUSIVE): with all of them awake for each job, three would look into
 * the database for nothing, and lock it for the one that has the job.  Who
 * wakes takes one byte, no more, sees to it that another one wakes when there
 * were more, and then claims until the queue is empty.  There are never fewer
 * bytes and awake workers than queued jobs, except when a worker dies between
 * its byte and its claim; for that workers look into the queue every few
 * seconds as well.
 */

/* ---- il-fcgi ---- */

struct wake {
	char *path; /* borrowed */
	int fd;	    /* -1: not open; the owner closes it */
};

/* Never blocks and never fails: a full FIFO wakes them anyway, and where nobody
 * reads nobody sleeps. */
void wake_workers(struct wake *wake, size_t count);

/* ---- il-worker ---- */

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

#endif
