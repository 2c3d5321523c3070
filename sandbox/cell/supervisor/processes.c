/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "names.h"
#include "shared.h"

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

static int64_t
field_of(const char *stat, int number)
{
	return processes_number(processes_field(stat, number));
}

/* The first of its threads may be dead and others alive. */
static bool
is_alive(const char *stat)
{
	const char *state = processes_field(stat, STAT_STATE);

	return (*state != 'Z' && *state != 'X') ||
	    field_of(stat, STAT_THREADS) > 1;
}

/* Is it of that session or a later one, and that old at most, and are all above
 * it, but PID 1?  Overwrites its stat. */
static bool
is_of(const struct supervisor *k, char stat[PROCESSES_TEXT_MAX], pid_t session,
    int64_t since)
{
	char name[21];
	int64_t parent;

	do {
		if (field_of(stat, STAT_SESSION) < session ||
		    field_of(stat, STAT_STARTED) < since)
			return false;
		parent = session > 0 ? field_of(stat, STAT_PARENT) : 0;
		name[base_decimal(name, (uint64_t)parent)] = '\0';
	} while (parent > 1 && processes_read(k, name, "/stat", stat));
	return true;
}

size_t
processes_kill(const struct supervisor *k, pid_t spared, pid_t session,
    int64_t since)
{
	struct names names = { .folder = openat(k->proc, ".",
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	char stat[PROCESSES_TEXT_MAX];
	const char *name;
	size_t alive = names.folder < 0;

	while (names.folder >= 0 && (name = names_next(&names)) != NULL) {
		pid_t pid = (pid_t)processes_number(name);

		if (pid > 1 && pid != spared &&
		    processes_read(k, name, "/stat", stat) && is_alive(stat) &&
		    is_of(k, stat, session, since)) {
			alive++;
			(void)kill(pid, SIGKILL);
		}
	}
	alive += names.failed;
	base_close(&names.folder);
	return alive;
}
