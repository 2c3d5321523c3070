/* SPDX-License-Identifier: MIT */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESSES_TEXT_MAX 2048

/*
 * Processes, as /proc tells of them, and their end.
 */
struct supervisor;

/* Fields of /proc/PID/stat. */
enum {
	STAT_STATE = 0,
	STAT_PARENT = 1,
	STAT_SESSION = 3,
	STAT_CUTIME = 13,
	STAT_CSTIME = 14,
	STAT_THREADS = 17,
	STAT_STARTED = 19
};

/* Read "/stat" or "/status" of a pid into text, with a NUL behind it.  False:
 * there is no such process. */
bool processes_read(const struct supervisor *k, const char *pid,
    const char *what, char text[PROCESSES_TEXT_MAX]);

/* Returns where a field of /proc/PID/stat begins.  It is "PID (NAME) STATE …":
 * STATE has the number 0, and a process chooses its NAME. */
const char *processes_field(const char *stat, int number);

/* Returns the number at the beginning of the text, after blanks; 0: none. */
int64_t processes_number(const char *text);

/* Kill all but PID 1 and spared (0: none) that are of this session or a later
 * one, and began at that tick or later, as all above them did.  Returns how
 * many of them were alive; it is not 0 where that cannot be told. */
size_t processes_kill(const struct supervisor *k, pid_t spared, pid_t session,
    int64_t since);

#endif
