/* SPDX-License-Identifier: MIT */
#ifndef HELP_H
#define HELP_H

#include "store/commands.h"

struct buf;

/*
 * What people are told of the commands that there are: pure.  A command in
 * back-ticks can be clicked (sandbox/store/command_id.h).
 */

/* An example: the line that people type, and the job that it makes. */
struct help_example {
	const char *line;
	enum job_kind kind;
	const char *text; /* NULL: none, as the input */
	const char *input;
	bool timeit;
};

#define HELP_EXAMPLES 5
extern const struct help_example help_examples[HELP_EXAMPLES];

/* All of `/il help`; the examples are numbered from 1. */
void help_add(struct buf *out);
/* The names that are nearest to a stranger's, three at most, or nothing: of
 * commands, or of one command's options. */
void help_add_near_command(struct buf *out, const char *name);
void help_add_near_option(struct buf *out, const struct command *command,
    const char *name);

#endif
