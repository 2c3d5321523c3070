/* SPDX-License-Identifier: MIT */
#ifndef SUBPROCESS_H
#define SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/process.h"

struct loop;
struct loop_timer;

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
void argv_add(struct argv *argv, const char *word);
void argv_addf(struct argv *argv, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Add an option and its value. */
void argv_option(struct argv *argv, const char *option, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Add several words, up to a NULL. */
void argv_add_all(struct argv *argv, const char *const *words);

#define auto_argv __attribute__((cleanup(argv_release)))
/* Argument of argv_init() and argv_add_all(). */
#define ARGV_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

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
