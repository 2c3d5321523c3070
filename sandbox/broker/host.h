/* SPDX-License-Identifier: MIT */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process.h"
#include "protocol/frame.h"

struct cells;
struct config;
struct engine;
struct images;
struct lease_status_file;
struct ledger;
struct loop;
struct loop_timer;
struct pool;
struct uids;

/* Life of il-sandboxd. */
enum phase {
	PHASE_SERVING,
	PHASE_DRAINING, /* nothing begins; leases go on until they end */
	PHASE_STOPPING, /* everything ends */
	PHASE_SWEEPING, /* remaining containers are removed */
};

/*
 * State that all parts of il-sandboxd share.  A part that changes schedules one
 * pass over everything, from the loop.  So no callback runs inside another, and
 * nothing is freed while it is used.
 */
struct host {
	struct loop *loop;
	const struct config *config;
	char instance[17];   /* label of this broker's containers */
	char *cells_dir;     /* absolute path; a folder for each container */
	int base;	     /* descriptor of IL_BASE_DIR */
	int64_t started_s;   /* wall clock; names are unique by it */
	unsigned int serial; /* and by the number of the last container */
	enum phase phase;
	struct engine *engine;
	struct images *images;
	struct ledger *ledger;
	struct cells *cells;
	struct pool *pool;
	struct uids *uids;
	struct lease_status_file *status; /* NULL: no such file */
	struct loop_timer *status_timer;
	bool needs_masks; /* the last API cell could not hide parts of /proc */
	struct loop_timer *pass;
	/* Write the status that il-fcgi reads: something has changed that
	 * people see (status.c). */
	void (*publish)(void *host);
	void (*run_pass)(void *host); /* the pass: il-sandboxd.c */
	int64_t pass_ms;
};

/* ---- engine.c ---- */

/* Read the number behind the key, which begins with "\n", in a small file of
 * the kernel's.  0: there is none, or fd is -1. */
int64_t host_read_number(int fd, const char *key);
/* Schedule a pass at that monotonic time, or earlier; 0: soon. */
void host_schedule(struct host *host, int64_t at_ms);

/* ---- policy.c ---- */

/*
 * Backoff after failed starts of containers: more starts do not help a slow or
 * broken engine.  After each failure the backoff doubles, and there is one
 * start at a time until one succeeds.  Pure: the caller passes the time.
 */
struct pause {
	int64_t most_ms;  /* the longest; the first is PAUSE_FIRST_MS */
	int failures;	  /* in a row */
	int64_t until_ms; /* monotonic: no start before this */
	enum refusal code;
	char text[200]; /* of the last failure */
};

#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 60000    /* where people wait for the start */
#define PAUSE_MOUNTS_MS 600000 /* where cells start as usual meanwhile */

void pause_note_failure(struct pause *pause, enum refusal code,
    const char *text, int64_t now_ms);
void pause_note_success(struct pause *pause);
/* Is a start forbidden now? */
bool pause_holds(const struct pause *pause, int64_t now_ms);
/* One failure may be chance: a waiting client gets another try.  After two in a
 * row a client that would have to wait for the backoff is refused at once. */
bool pause_refuses(const struct pause *pause, int64_t now_ms);

/* ---- docker.c ---- */

/*
 * Words of a command, on the heap, always NULL-terminated.  One word beyond
 * ARGV_MAX ends the program: no command grows with data from outside.
 */
#define ARGV_MAX 128

struct argv {
	char *words[ARGV_MAX + 1];
	size_t count;
	const char *input; /* borrowed: its standard input; NULL: /dev/null */
};

/* Begin an argv with these words, up to a NULL. */
void argv_init(struct argv *argv, const char *const *words);
void argv_release(struct argv *argv);
/* Add a word. */
void argv_addf(struct argv *argv, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#define auto_argv __attribute__((cleanup(argv_release)))
/* Argument of argv_init(). */
#define ARGV_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- engine.c: programs ---- */

/*
 * A program that runs in parallel to the event loop. `done` is called once,
 * from the loop, with the result, even when the program could not be started
 * (PROCESS_NOT_STARTED).  It may start the subprocess again.  A cancelled one
 * is killed, and done is not called.
 */
typedef void (*subprocess_fn)(void *arg, const struct process_result *result);

struct subprocess {
	struct loop *loop;
	struct process process;
	struct loop_timer *timer;
	bool running;
	subprocess_fn done;
	void *arg;
};

/* Start the program.  The words need only live for the call, argv->input until
 * the end. sub must not be running; all zeros will do. */
void subprocess_start(struct subprocess *sub, struct loop *loop,
    const struct argv *argv, int timeout_ms, subprocess_fn done, void *arg);
/* Kill the program; nothing happens when it is not running. */
void subprocess_cancel(struct subprocess *sub);

#endif
