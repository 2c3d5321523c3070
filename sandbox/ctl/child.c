/* SPDX-License-Identifier: MIT */
/*
 * From fork() to exec: a child gives up its rights in an order in which each
 * step is still allowed.
 */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/priority.h"
#include "account.h"
#include "view.h"

#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS 5000
/* One that ran for so long did start well. */
#define STEADY_MS 10000

void
child_init(struct child *child, enum child_stage stage, const char *name)
{
	*child = (struct child){ .stage = stage,
		.pidfd = -1,
		.ready_fd = -1,
		.view_fd = -1,
		.death_signal = SIGKILL };
	(void)snprintf(child->name, sizeof(child->name), "%s", name);
}

/* The programs themselves have ended by then. */
void
child_release(struct child *child)
{
	for (int i = 0; i < child->argc; i++)
		free(child->argv[i]);
	cleanup_close(&child->pidfd);
	cleanup_close(&child->ready_fd);
	for (int i = 0; i < child->sockets; i++)
		cleanup_close(&child->listen_fd[i]);
}

void
child_arg(struct child *child, const char *text)
{
	assert(child->argc < CHILD_ARGS - 1);
	child->argv[child->argc++] = xstrdup(text);
}

void
child_args(struct child *child, const char *const *texts)
{
	for (; *texts != NULL; texts++)
		child_arg(child, *texts);
}

/* sd_listen_fds(3): descriptors from 3 on, and whose they are.  All are moved
 * out of the way first. */
static void
hand_over(const struct child *child)
{
	int moved[CHILD_SOCKETS];
	char text[24];

	for (int i = 0; i < child->sockets; i++)
		moved[i] = fcntl(child->listen_fd[i], F_DUPFD_CLOEXEC,
		    3 + CHILD_SOCKETS);
	for (int i = 0; i < child->sockets; i++)
		(void)dup2(moved[i], 3 + i);
	(void)snprintf(text, sizeof(text), "%ld", (long)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%d", child->sockets);
	(void)setenv("LISTEN_FDS", text, 1);
}

/* In the child, up to exec: it never returns. */
static void
become(const struct child *child, pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid(); /* and a process group */
	/* Who answers and who carries comes before what people's code computes:
	 * endless loops delay an answer less (tests/README.md, bench). */
	priority_come_first();
	priority_take_short_slices();
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (child->ready_fd >= 0)
		(void)dup2(child->ready_fd, 3);
	if (child->sockets > 0)
		hand_over(child);
	if (view_enter(child->view_fd) != 0 ||
	    account_assume(child->account,
		child->ready_fd >= 0 ? 4 : 3 + child->sockets) != 0) {
		log_err("%s: to give up rights: %m", child->name);
		_exit(CHILD_NOT_STARTED);
	}
	/* A change of the user takes the signal away: it comes last. */
	if (prctl(PR_SET_PDEATHSIG, child->death_signal) != 0 ||
	    getppid() != parent || null < 0)
		_exit(CHILD_NOT_STARTED);
	(void)execvp(child->argv[0], child->argv);
	log_err("%s: %m", child->argv[0]);
	_exit(CHILD_NOT_STARTED);
}

/* The pidfd tells of its end; without one it is not watched, so not run. */
int
child_start(struct child *child, struct err *err)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return err_system(err, "fork");
	if (pid == 0)
		become(child, parent);
	child->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (child->pidfd < 0) {
		(void)err_system(err, "pidfd_open");
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return -1;
	}
	(void)fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
	cleanup_close(&child->ready_fd);
	child->pid = pid;
	child->started_ms = clock_monotonic_ms();
	return 0;
}

/* The group is killed while its leader is not reaped: until then the number is
 * nobody else's. */
int
child_reap(struct child *child)
{
	int status = 0;

	(void)kill(-child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	cleanup_close(&child->pidfd);
	child->pid = 0;
	return status;
}

int64_t
child_next_backoff(struct child *child)
{
	int64_t wait = child->backoff_ms;

	if (wait == 0 || clock_monotonic_ms() - child->started_ms > STEADY_MS)
		wait = BACKOFF_FIRST_MS;
	child->backoff_ms = wait * 2 < BACKOFF_LAST_MS ? wait * 2 :
							 BACKOFF_LAST_MS;
	return wait;
}
