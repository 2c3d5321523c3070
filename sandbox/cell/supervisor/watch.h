/* SPDX-License-Identifier: MIT */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/frame.h"

/*
 * Watching a running process: its output is passed on to the client, and its
 * limits are enforced.  While the client is slow, one frame waits and the pipes
 * are not read: that blocks the process, and its clock goes on.  Each function
 * that waits ends the cell when the broker is gone.
 */
enum watch_end {
	WATCH_ENDED, /* the process has ended */
	WATCH_TIME,  /* it must end: a limit is reached */
	WATCH_OUTPUT,
	WATCH_GONE,   /* the client has hung up, or broken the protocol */
	WATCH_CHILD,  /* a child has ended: reap it, and go on */
	WATCH_BESIDE, /* the broker has sent a packet: read it, and go on */
	WATCH_RESTS,  /* the process says that it rests */
};

#define WATCH_STREAMS 2

struct watch {
	/* borrowed */
	int control; /* to the broker */
	int lease;   /* to the client */
	int process; /* pidfd, and its number: it leads a group */
	pid_t leader;
	int word; /* from a process that will rest; -1 */
	/* owned: closed, and -1, at their end; watch_close() */
	int feed;		    /* the process's standard input */
	int outputs[WATCH_STREAMS]; /* its standard output and error */
	int file;		    /* rest of the input for feed */
	int64_t file_at;
	int64_t file_end;
	/* nanoseconds of the monotonic clock */
	int64_t started;
	int64_t deadline;
	int64_t rest;	   /* until then the pipes are not read */
	int64_t next_rest; /* duration of the next such rest */
	/* bytes of each stream within the limit */
	uint64_t left[WATCH_STREAMS];
	bool drains;  /* output over the limit is dropped, else ends the run */
	bool over;    /* the limit is exceeded */
	bool pending; /* frame waits until the client has room */
	struct frame frame;
	char data[FRAME_CHUNK];
};

/* Start the clock.  The caller has checked the limits. */
void watch_start(struct watch *watch, uint64_t wall_ms, uint64_t output_max,
    bool drains);

/* Watch until the process ends, a limit is reached, or a signal comes. */
enum watch_end watch_run(struct watch *watch);

/* The process is dead: pass on the rest of its output in the pipes.  False: the
 * client is gone. */
bool watch_drain(struct watch *watch);

/* Send watch->frame to the client, however slow that is.  False: it is gone. */
bool watch_send(struct watch *watch);

/* Close all owned descriptors.  Harmless when it is called again. */
void watch_close(struct watch *watch);

int64_t watch_now(void);

#endif
