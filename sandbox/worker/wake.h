#ifndef WAKE_H
#define WAKE_H

struct err;

/*
 * The FIFO STATE/wake.  il-fcgi writes a byte after it has committed a job and
 * answered; all workers poll it.
 *
 * Who finds it readable takes one byte, no more, and then claims until the
 * queue is empty: as long as bytes are left the other workers wake too.  There
 * are never fewer bytes and awake workers than queued jobs, except when a
 * worker dies between its byte and its claim; for that workers look into the
 * queue every few seconds as well.
 */

/* Open it (making it when it is missing) for reading and writing, so that it
 * never shows an end of file.  -1: err says why. */
int wake_open(const char *path, struct err *err);
/* Take one byte if there is one. */
void wake_take(int fd);
/* There is work for `count` others. */
void wake_others(int fd, int count);

#endif
