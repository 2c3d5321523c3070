/* SPDX-License-Identifier: MIT */
/* sandbox/protocol/handover.c: a byte wakes one worker, none is forgotten. */
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "protocol/handover.h"
#include "tap.h"

#define WORKERS 4
#define WAIT_MS 10000
#define SLEEP_MS 60000

static int report[2];
static int stop[2];

/* A worker that takes one byte and says so; then it has a job for ever. */
static void
work(const char *path)
{
	struct err err;
	int fd = wake_fifo_open(path, &err);
	int wait_fd = wake_wait_open(fd, stop[0], &err);
	char who = 'w';

	(void)close(stop[1]);
	(void)!write(report[1], "r", 1);
	wake_wait(wait_fd, fd, SLEEP_MS);
	(void)!write(report[1], &who, 1);
	while (read(stop[0], &who, 1) < 0)
		;
	_exit(0);
}

/* Wait for so many reports; false: they do not come. */
static bool
reports(int count)
{
	struct pollfd p = { .fd = report[0], .events = POLLIN };
	char byte;

	while (count > 0 && poll(&p, 1, WAIT_MS) > 0 &&
	    read(report[0], &byte, 1) == 1)
		count--;
	return count == 0;
}

/* Whether each of them sleeps in epoll_wait. */
static bool
are_asleep(const pid_t *pids)
{
	char path[64];
	char state = '?';

	for (int i = 0; i < WORKERS; i++) {
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/%d/stat",
		    (int)pids[i]);
		file = fopen(path, "r");
		if (file == NULL || fscanf(file, "%*d %*s %c", &state) != 1)
			state = '?';
		if (file != NULL)
			(void)fclose(file);
		if (state != 'S')
			return false;
	}
	return true;
}

static void
start(pid_t *pids, const char *path)
{
	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			work(path);
	}
	ok(reports(WORKERS), "the workers wait");
	for (int i = 0; i < 1000 && !are_asleep(pids); i++)
		(void)poll(NULL, 0, 5);
}

int
main(void)
{
	char folder[] = "/tmp/inline-wake-XXXXXX";
	char path[64];
	pid_t pids[WORKERS];
	struct err err;
	struct pollfd more = { .events = POLLIN };
	int fd;

	if (mkdtemp(folder) == NULL || pipe(report) < 0 || pipe(stop) < 0)
		return 1;
	(void)snprintf(path, sizeof(path), "%s/wake", folder);
	fd = wake_fifo_open(path, &err);
	ok(fd >= 0, "the FIFO is made");
	start(pids, path);
	ok(write(fd, "", 1) == 1 && reports(1), "a byte wakes a worker");
	more.fd = report[0];
	is_int(poll(&more, 1, 200), 0, "and no other one");
	ok(write(fd, "\0\0", 2) == 2 && reports(2),
	    "two bytes at once wake two");
	is_int(poll(&more, 1, 200), 0, "and not the last one");
	(void)close(stop[1]);
	ok(reports(1), "which wakes when it is to stop");
	for (int i = 0; i < WORKERS; i++)
		(void)waitpid(pids[i], NULL, 0);
	(void)unlink(path);
	(void)rmdir(folder);
	return tap_done();
}
