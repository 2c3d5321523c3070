/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "class.h"

struct config;
struct frame_view;

/*
 * Who may ask for what.  Each program that asks the broker has a socket of its
 * own, and whoever reached that is taken for it: the right to open the socket
 * is the file system's matter.  Which program may lease a class stands in the
 * class's row (class.h).
 */
struct program {
	const char *name;
	const char *socket;    /* below IL_STATE_DIR */
	unsigned int commands; /* frames that it may send: 1 << FRAME_... */
	size_t connections;    /* at one time, beside those of all its leases */
};

extern const struct program programs[PROGRAMS];

/* How many connections it may have; others wait to be accepted. */
size_t program_connections(enum program_name name, const struct config *config);

/* May it ask for this?  A class that there is not, or none, is not judged here.
 * *what: the command or the class, for the refusal; not of the frame. */
bool program_may(enum program_name name, const struct frame_view *view,
    const char **what);

#endif
