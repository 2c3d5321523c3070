/* SPDX-License-Identifier: MIT */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESSES_TEXT_MAX 2048

/*
 * What /proc says of a process.
 */
struct supervisor;

/* "/stat" or "/status" of a pid, into text, with a NUL behind it.  False: there
 * is no such process. */
bool processes_read(const struct supervisor *k, const char *pid,
    const char *what, char text[PROCESSES_TEXT_MAX]);

/* In "PID (NAME) STATE …" of /proc/PID/stat, where a process chooses its NAME:
 * the field with that number, STATE is 0. */
const char *processes_field(const char *stat, int number);

int64_t processes_number(const char *text);

/* By its /proc/PID/stat. */
bool processes_is_alive(const char *stat);

#endif
