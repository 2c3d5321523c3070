#ifndef WAKE_SEND_H
#define WAKE_SEND_H

#include <stddef.h>

/*
 * Telling the workers that there are jobs: a byte for each into the FIFO
 * STATE/wake (their end: wake_wait.h).  Nothing depends on it but the delay; a
 * job that is committed is found.
 */
struct wake {
	char *path; /* borrowed */
	int fd;	    /* -1: not open */
};

void wake_init(struct wake *wake, char *path);
void wake_close(struct wake *wake);
/* Never blocks and never fails: a full FIFO wakes them anyway, and where nobody
 * reads nobody sleeps. */
void wake_workers(struct wake *wake, size_t count);

#endif
