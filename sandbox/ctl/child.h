/* SPDX-License-Identifier: MIT */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct account;
struct err;
struct loop_timer;
struct supervisor;

/*
 * In which order programs are ended: who takes requests in first, who ends the
 * containers last.  The stand-in outlives the workers, which tell it their last
 * answers.
 */
enum child_stage {
	STAGE_NGINX,
	STAGE_FRONT,
	STAGE_WORKER,
	STAGE_STANDIN,
	STAGE_BROKER,
	STAGE_COUNT,
};

#define CHILD_ARGS 16
#define CHILD_SOCKETS 4
/* Its exit status when the program could not be executed at all. */
#define CHILD_NOT_STARTED 127

/*
 * One program that is watched.  It leads a session, and so a process group, of
 * its own: the terminal's Ctrl-C reaches it through us and in order, what it
 * leaves behind can be ended with it, and it has a weight of its own
 * (../base/priority.h).
 */
struct child {
	char name[40];
	enum child_stage stage;
	/* What it gets when we die.  nginx would leave its workers behind when
	 * killed; the others hold nothing that does not end with them. */
	int death_signal;
	char *argv[CHILD_ARGS]; /* heap; argv[0] is looked up in PATH */
	int argc;
	int ready_fd; /* its descriptor 3 at the first start; -1: none */
	/* Listening sockets, its descriptors from 3 on at every start, as
	 * systemd hands them over: while the program is started again, who
	 * connects waits instead of being refused. */
	int listen_fd[CHILD_SOCKETS];
	int sockets;
	/* As whom it runs, borrowed; NULL: as we do. */
	const struct account *account;
	int view_fd; /* what it sees of the folders (view.h), borrowed; -1 */

	pid_t pid; /* 0: not running */
	int pidfd; /* readable when it has ended; -1 */
	int64_t started_ms;
	int64_t backoff_ms;	       /* until the next start */
	struct loop_timer *restart;    /* it waits for this; NULL */
	struct supervisor *supervisor; /* who watches it */
};

void child_init(struct child *child, enum child_stage stage, const char *name);
void child_release(struct child *child);
/* Add an argument; the text is copied. */
void child_arg(struct child *child, const char *text);
/* Several of them, up to a NULL. */
void child_args(struct child *child, const char *const *texts);

int child_start(struct child *child, struct err *err);
/* After pidfd was readable: end what is left of its group, reap it.  Returns
 * the wait status. */
int child_reap(struct child *child);
/* How long to wait before it is started again; grows while it keeps ending
 * soon after its start. */
int64_t child_next_backoff(struct child *child);

#endif
