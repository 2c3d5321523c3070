/* SPDX-License-Identifier: MIT */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/*
 * Processes that are started, watched, started again when they end, and ended
 * stage by stage.
 *
 *	a child		event			then
 *	is due		its time has come	it is forked, and runs
 *	runs		it ends soon		it is due after a backoff
 *			it ends later		it is due after again_ms
 *			its stage is ended	it gets its signal; SIGKILL when
 *						the stage's time is over
 *	has ended	in its stage		with the last one of them the
 *						next stage is ended
 *
 * From children_end() on none is started.  When a child ends, what is left of
 * the process group that it leads is killed before the child is reaped: until
 * then its number is no other process's.
 */
struct child {
	const char *name; /* for the log */
	size_t stage;
	int end_signal;

	pid_t pid;     /* 0: it does not run */
	bool stopped;  /* by SIGSTOP: it runs, and does nothing */
	int failures;  /* ends in a row, each soon after its start */
	int64_t at_ms; /* monotonic: of its start, or when it is due */
};

struct children_stage {
	int64_t ms; /* time to end */
	int calm;   /* so many signals do not kill it */
};

/* All functions get arg. */
struct children {
	struct child *of; /* the caller's */
	size_t count;
	const struct children_stage *stages; /* in the order of their end */
	size_t stage_count;
	int64_t first_ms, most_ms; /* of the backoff */
	int64_t steady_ms;	   /* a longer life is no failure */
	int64_t again_ms;	   /* pause after such a life */
	void *arg;
	/* Be this child, in the new process.  Never returns. */
	void (*become)(void *arg, size_t index, pid_t parent);
	/* A child has ended, as waitid() says. */
	void (*ended)(void *arg, size_t index, const siginfo_t *end);
	/* Called at the start and every tick_ms (0: never) up to the end. */
	void (*tick)(void *arg);
	int64_t tick_ms;
	/* The same whenever this descriptor is readable; 0: there is none. */
	int watched;
	/* A signal asks for the end, before it is counted. */
	void (*signalled)(void *arg);
	bool linger; /* do not wait for the end of those that were asked */

	/* children.c */
	int asked;	  /* signals, and children_end() before them */
	bool by_itself;	  /* children_end() came, and no signal yet */
	bool news;	  /* watched is readable */
	int64_t asked_ms; /* the last signal */
	size_t stage;	  /* that is being ended */
	int told;	  /* asked, when the stage was signalled; 0: not yet */
	int64_t deadline_ms; /* of the stage */
};

/* Start all, watch them, and end them at SIGTERM, SIGINT or SIGHUP.  Returns
 * when all have ended; -1: they could not be watched. */
int children_run(struct children *children, struct err *err);
/* Begin to end all.  The first signal after it does not hurry them. */
void children_end(struct children *children);

#endif
