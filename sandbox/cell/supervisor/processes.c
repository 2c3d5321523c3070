/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "shared.h"

/* of /proc/PID/stat */
enum { STATE = 0, THREADS = 17 };

/* Into text, with a NUL behind it.  False: there is no such process. */
bool
processes_read(const struct supervisor *k, const char *pid, const char *what,
    char text[PROCESSES_TEXT_MAX])
{
	char path[32];
	size_t len = strlen(pid);
	ssize_t got = -1;
	int fd;

	memcpy(path, pid, len + 1);
	memcpy(path + len, what, strlen(what) + 1);
	fd = openat(k->proc, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, PROCESSES_TEXT_MAX - 1);
		(void)close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

int64_t
processes_number(const char *text)
{
	int64_t value = 0;

	while (*text == ' ' || *text == '\t')
		text++;
	for (; *text >= '0' && *text <= '9' && value < INT64_MAX / 16; text++)
		value = value * 10 + (*text - '0');
	return value;
}

/* In "PID (NAME) STATE …" of /proc/PID/stat, where a process chooses its NAME:
 * the field with that number, STATE is 0. */
const char *
processes_field(const char *text, int number)
{
	const char *at = text;

	for (const char *p = text; *p != '\0'; p++)
		if (*p == ')')
			at = p + 1;
	for (; number >= 0 && *at != '\0'; at++)
		number -= *at == ' ';
	return at;
}

/* The first of its threads may be dead and others alive. */
bool
processes_is_alive(const char *stat)
{
	const char *state = processes_field(stat, STATE);

	return (*state != 'Z' && *state != 'X') ||
	    processes_number(processes_field(stat, THREADS)) > 1;
}
