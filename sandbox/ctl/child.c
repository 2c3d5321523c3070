/* SPDX-License-Identifier: MIT */
/*
 * From fork() to exec: a child gives up its rights in an order in which each
 * step is still allowed.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/priority.h"
#include "run.h"

/* sd_listen_fds(3): descriptors from 3 on, and whose they are.  All are moved
 * out of the way first. */
static void
hand_over(const struct child *child)
{
	int moved[CHILD_FDS];
	char text[24];

	for (int i = 0; i < child->fd_count; i++)
		moved[i] = fcntl(child->fds[i], F_DUPFD_CLOEXEC, 3 + CHILD_FDS);
	for (int i = 0; i < child->fd_count; i++)
		(void)dup2(moved[i], 3 + i);
	if (child->stage != STAGE_FRONT)
		return;
	(void)snprintf(text, sizeof(text), "%ld", (long)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%d", child->fd_count);
	(void)setenv("LISTEN_FDS", text, 1);
}

/* In the child, up to exec: it never returns. */
static void
become(const struct child *child, pid_t parent)
{
	const struct run *run = child->run;
	bool has_view = child->account != ACCOUNTS && run->view_fd >= 0;
	/* What it gets when we die.  nginx would leave its workers behind when
	 * killed; the others hold nothing that does not end with them. */
	int death = child->stage == STAGE_NGINX ? SIGTERM : SIGKILL;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

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
	hand_over(child);
	if ((has_view && setns(run->view_fd, CLONE_NEWNS) != 0) ||
	    account_assume(run, child->account, 3 + child->fd_count) != 0) {
		log_err("%s: to give up rights: %m", child->name);
		_exit(CHILD_NOT_STARTED);
	}
	/* A change of the user takes the signal away: it comes last. */
	if (prctl(PR_SET_PDEATHSIG, death) != 0 || getppid() != parent ||
	    null < 0)
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
	child->pid = pid;
	child->started_ms = clock_monotonic_ms();
	return 0;
}
