#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct frame_view;

/*
 * Who may ask for what.  Each program that asks the broker has a socket of its
 * own, and whoever reached that is taken for it: the right to open the socket
 * is the file system's matter.
 */
#define PROGRAMS 3
#define PROGRAM_CLASSES 3
#define PROGRAM_COMMANDS 4

struct program {
	const char *name;
	const char *socket; /* below IL_STATE_DIR */
	/* Frames that it may send (enum frame_kind); 0: no more. */
	int commands[PROGRAM_COMMANDS];
	/* Cells that it may lease; NULL: no more. */
	const char *classes[PROGRAM_CLASSES];
	size_t connections; /* at one time, beside those of all its leases */
};

extern const struct program programs[PROGRAMS];

/* How many connections it may have; others wait to be accepted. */
size_t program_connections(const struct program *program,
    const struct config *config);

/* May it ask for this?  A class that there is not, or none, is not judged here.
 * *what: the command or the class, for the refusal; not of the frame. */
bool program_may(const struct program *program, const struct frame_view *view,
    const char **what);

#endif
