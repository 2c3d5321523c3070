/* SPDX-License-Identifier: MIT */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;
struct stat;

/* Append a whole file to out.  ERR_CONFIG when it cannot be read or is larger
 * than out may be: these are files of the installation. */
int file_read(const char *path, struct buf *out, struct err *err);
/* Replace a file whole or not at all; mode 0640, and the group of the one that
 * was there: whoever was let in to read that reads this.  lasting: a power cut
 * does not undo it. */
int file_write(const char *path, const char *text, size_t len, bool lasting,
    struct err *err);
/* Are these two of one file that has not changed, nor its rights? */
bool file_is_same(const struct stat *one, const struct stat *other);

/* ---- files of KEY=VALUE lines ---- */

/*
 * Files of KEY=VALUE lines, as systemd's EnvironmentFile= reads them: blank
 * lines and lines that start with '#' are skipped, blanks around key and value
 * are dropped, so is one pair of single or double quotes around the whole
 * value; nothing is expanded, and there are no continued lines.
 */

/* Called for each line in order; both texts are valid for as long as the text
 * that was parsed.  -1 with err filled stops. */
typedef int (*envfile_fn)(void *arg, const char *key, const char *value,
    struct err *err);

/* Walk a text, which is taken apart in place.  ERR_CONFIG "<name> line N: why"
 * when a line is malformed; ERR_CONFIG, too, for a NUL byte.  name: for errors
 * only. */
int envfile_parse(struct buf *text, const char *name, envfile_fn fn, void *arg,
    struct err *err);

/* ---- files that processes share ---- */

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
