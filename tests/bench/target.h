/* SPDX-License-Identifier: MIT */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/basics.h"
#include "samples.h"
#include "sign.h"

struct loop;

/*
 * Targets of a measurement.  A target is one kind of request.  A lane sends it,
 * again and again, one at a time; several lanes of a target make a concurrency.
 *
 *	eval:PORT:REQUEST:EXPECTED	an HTTP request, as it is in a file; the
 *					answer's body must be that of a file
 *	post:PORT:REQUEST:EXPECTED	the same; it must be somewhere in there
 *	ping:PORT			a signed PING
 *	ack:PORT:USER:CODE		`/il py`, until it is acknowledged
 *	command:PORT:USER:CODE:EXPECTED	`/il py`, until the last byte of its
 *					result's edit is there
 *	spawn:ARGV:EXPECTED		a program, until it has been reaped
 *
 * REQUEST, EXPECTED, CODE (the inside of a JSON string) and ARGV (a word each
 * line) are files, by absolute paths; CODE may be the name of another command
 * instead.  Lane i of USER is the user USER + i.
 */
struct bench {
	struct loop *loop;
	struct signer signer;
	bool fresh; /* a new connection for each request */
	int null_fd;
	/* of `command`: who waits for an edit, by number */
	struct lane **lanes;
	size_t lane_count;
};

struct lane {
	struct bench *bench;
	struct target *target;
	size_t number; /* in bench->lanes */
	size_t index;  /* in its target */
	int64_t started_us;
	int64_t ended_us; /* before the answer was looked at; 0: now */
	bool busy;
	void *state;
	/* called once for each lane_start() */
	void (*done)(void *arg, struct lane *lane);
	void *arg;
};

struct target_type {
	const char *name;
	int words; /* after the name */
	void *(*open)(struct lane *lane);
	void (*release)(struct lane *lane);
	/* NULL: there is nothing to do before */
	void (*prepare)(struct lane *lane);
	void (*start)(struct lane *lane);
	/* NULL: it waits for no edit */
	void (*edited)(struct lane *lane, const char *token, const char *body,
	    size_t len);
};

#define TARGET_WORDS 4

struct target {
	const struct target_type *type;
	const char *spec;
	char *words[TARGET_WORDS];
	struct buf files[TARGET_WORDS]; /* the contents of those that are */
	struct samples whole;
	struct samples first; /* ack of a command, first byte of a program */
	uint64_t errors;
	char error[200]; /* the first one */
	double cpu_s;	 /* of programs */
	double seconds;	 /* the time that `counted` took */
	uint64_t counted;
};

/* End the program when anything is not over within a minute: it never will. */
void bench_watch(struct bench *bench);

/* Parse a spec and read its files; complains and exits. */
void target_open(struct target *target, const char *spec);
void target_release(struct target *target);
/* One JSON object. */
void target_print(struct target *target, FILE *out);

struct lane *lane_new(struct bench *bench, struct target *target, size_t index);
void lane_free(struct lane *lane);
/* Sign and connect, outside the measured time. */
void lane_prepare(struct lane *lane);
void lane_start(struct lane *lane);

/* For the types: what began at lane->started_us is over.  error: NULL if it is
 * right. */
void lane_done(struct lane *lane, const char *error);
void lane_fail(struct lane *lane, const char *what, const char *text,
    size_t len);
double lane_ms(const struct lane *lane);

extern const struct target_type target_eval;
extern const struct target_type target_post;
extern const struct target_type target_ping;
extern const struct target_type target_ack;
extern const struct target_type target_command;
extern const struct target_type target_spawn;

#endif
