/* SPDX-License-Identifier: MIT */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/frame.h"

/*
 * A running process: its output goes on to the client, and it is held to its
 * limits.  While the client is slow, one frame waits and the pipes are not
 * read: the process is held up, its clock is not.  Whatever waits here ends the
 * cell when the broker is gone.
 */
enum watch_end {
	WATCH_ENDED, /* the process has, by itself */
	WATCH_TIME,  /* it must end: its limits are reached */
	WATCH_OUTPUT,
	WATCH_GONE,   /* the client has hung up, or broken the protocol */
	WATCH_CHILD,  /* a child has: reap it, and go on */
	WATCH_BESIDE, /* the broker says something: take it, and go on */
	WATCH_RESTS,  /* the process says that it does */
};

#define WATCH_STREAMS 2

struct watch {
	/* borrowed */
	int control; /* to the broker */
	int lease;   /* to the client */
	int process; /* pidfd, and its number: it leads a group */
	pid_t leader;
	int word; /* where it says that it rests; -1: it does not */
	/* owned: closed, and -1, when they are at their end; watch_close() */
	int feed;		    /* the process's standard input */
	int outputs[WATCH_STREAMS]; /* its standard output and error */
	int file;		    /* what has not fitted into feed: */
	int64_t file_at;
	int64_t file_end;
	/* nanoseconds of the monotonic clock */
	int64_t started;
	int64_t deadline;
	int64_t rest;	   /* when the pipes are read again */
	int64_t next_rest; /* after a small piece, for so long */
	/* bytes of each stream that may still come */
	uint64_t left[WATCH_STREAMS];
	bool drains;  /* what comes after is dropped, else it ends the run */
	bool over;    /* more has come than is wanted */
	bool pending; /* frame is one that the client had no room for */
	struct frame frame;
	char data[FRAME_CHUNK];
};

/* The clock starts; limits are the caller's to have checked. */
void watch_start(struct watch *watch, uint64_t wall_ms, uint64_t output_max,
    bool drains);

/* Until something ends it, or a signal comes. */
enum watch_end watch_run(struct watch *watch);

/* The process is dead: pass on what it has left in the pipes.  False: the
 * client is gone. */
bool watch_drain(struct watch *watch);

/* Send watch->frame to the client, however slow that is: as watch_drain(). */
bool watch_send(struct watch *watch);

/* Close what is owned.  Harmless when it is called again. */
void watch_close(struct watch *watch);

int64_t watch_now(void);

#endif
