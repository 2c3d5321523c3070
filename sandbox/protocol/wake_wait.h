#ifndef WAKE_WAIT_H
#define WAKE_WAIT_H

struct err;

/*
 * The workers' end of the FIFO STATE/wake.  il-fcgi writes a byte for each job
 * that it has committed and answered (wake_send.h).  All workers wait for it,
 * and the kernel wakes one of those that wait (EPOLLEXCLUSIVE): with all of
 * them awake for each job, three would look into the database for nothing, and
 * lock it for the one that has the job.
 *
 * Who wakes takes one byte, no more, sees to it that another one wakes when
 * there were more, and then claims until the queue is empty.  There are never
 * fewer bytes and awake workers than queued jobs, except when a worker dies
 * between its byte and its claim; for that workers look into the queue every
 * few seconds as well.
 */

/* Open it (making it when it is missing) for reading and writing, so that it
 * never shows an end of file.  -1: err says why. */
int wake_fifo_open(const char *path, struct err *err);
/* A descriptor to wait on for the FIFO and for stop_fd. */
int wake_wait_open(int fd, int stop_fd, struct err *err);
/* Wait for a byte of the FIFO, and take it; for stop_fd; for timeout_ms. */
void wake_wait(int wait_fd, int fd, int timeout_ms);
/* Take one byte if there is one, and let another worker wake for the rest. */
void wake_take(int fd);
/* There is work for `count` others. */
void wake_others(int fd, int count);

#endif
