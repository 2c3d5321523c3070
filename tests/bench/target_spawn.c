/* SPDX-License-Identifier: MIT */
/* A program, started as cheaply as can be: posix_spawn does not copy our memory
 * and returns when the new program runs.  Its end is the end of its output and
 * of itself. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"

#define WORDS_MAX 128
#define OUTPUT_MAX (1 << 16)

extern char **environ;

struct program {
	char *words; /* with a NUL after each */
	char *argv[WORDS_MAX + 1];
	struct buf out;
	pid_t pid;
};

static void *
spawn_open(struct lane *lane)
{
	const struct buf *file = &lane->target->files[0];
	struct program *program = xcalloc(1, sizeof(*program));
	char *next;

	program->words = xstrndup(buf_str(file), file->len);
	buf_init(&program->out, OUTPUT_MAX);
	next = program->words;
	for (int i = 0; i < WORDS_MAX && *next != '\0'; i++) {
		size_t len = strcspn(next, "\n");

		program->argv[i] = next;
		next += len;
		if (*next == '\n')
			*next++ = '\0';
	}
	return program;
}

static void
spawn_release(struct lane *lane)
{
	struct program *program = lane->state;

	free(program->words);
	buf_release(&program->out);
	free(program);
}

static void
check_end(struct lane *lane)
{
	struct program *program = lane->state;
	const struct buf *want = &lane->target->files[1];
	struct rusage usage;
	int status = 0;

	if (wait4(program->pid, &status, 0, &usage) < 0) {
		lane_done(lane, "cannot wait");
		return;
	}
	lane->target->cpu_s += (double)(usage.ru_utime.tv_sec +
				   usage.ru_stime.tv_sec) +
	    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	if (status != 0 || program->out.len != want->len ||
	    memcmp(program->out.data, want->data, want->len) != 0)
		lane_fail(lane, "another output", program->out.data,
		    program->out.len);
	else
		lane_done(lane, NULL);
}

static void
on_output(void *arg, int fd, uint32_t events)
{
	struct lane *lane = arg;
	struct program *program = lane->state;
	char *room = buf_reserve(&program->out, 4096);
	ssize_t got = room != NULL ? read(fd, room, 4096) : 0;

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) {
		if (program->out.len == 0)
			samples_add(&lane->target->first, lane_ms(lane));
		buf_commit(&program->out, (size_t)got);
		return;
	}
	loop_remove(lane->bench->loop, fd);
	(void)close(fd);
	check_end(lane);
}

static void
spawn_start(struct lane *lane)
{
	struct program *program = lane->state;
	posix_spawn_file_actions_t actions;
	int pipe_fds[2];
	int error;

	buf_reset(&program->out);
	if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
		lane_done(lane, "no pipe");
		return;
	}
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, lane->bench->null_fd,
	    0);
	(void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
	error = posix_spawn(&program->pid, program->argv[0], &actions, NULL,
	    program->argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipe_fds[1]);
	if (error != 0) {
		(void)close(pipe_fds[0]);
		lane_fail(lane, program->argv[0], strerror(error),
		    strlen(strerror(error)));
		return;
	}
	loop_add(lane->bench->loop, pipe_fds[0], EPOLLIN, on_output, lane);
}

const struct target_type target_spawn = {
	.name = "spawn",
	.words = 2,
	.open = spawn_open,
	.release = spawn_release,
	.start = spawn_start,
};
