/* SPDX-License-Identifier: MIT */
#ifndef SHARED_FILE_H
#define SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/*
 * A small file of numbers that several processes map: what one changes the
 * others see, and it stays when they end.  There is no lock that somebody who
 * is killed could keep, so the numbers in it are atomic.
 */

/* Map it for writing; it is made if it is missing, all zero, for everybody to
 * read who may enter its folder.  NULL: it is not a file of ours (another
 * owner, another size, no regular file), or cannot be opened.  path NULL:
 * memory that is shared with who is forked later. */
void *shared_file_open(const char *path, size_t size, struct err *err);
/* Map it for reading, whose ever it is. */
const void *shared_file_read(const char *path, size_t size, struct err *err);
/* The mark that a process leaves of itself in such a file: its number and its
 * start, as another process may get the number after it.  0: no process. */
int64_t shared_file_writer(void);
pid_t shared_file_writer_pid(int64_t writer);
/* Is the process that left this mark there, whose ever it is?  It may be
 * stopped.  Where /proc hides it, one of the same number counts. */
bool shared_file_writer_is_there(int64_t writer);
/* NULL is fine. */
void shared_file_close(const void *shared, size_t size);

#endif
