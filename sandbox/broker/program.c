/* SPDX-License-Identifier: MIT */
/*
 * The table of the programs that may connect.
 */
#include "program.h"

#include "../protocol/frame.h"
#include "../protocol/sockets.h"

#define MAY(kind) (1U << FRAME_##kind)

/* il-api's connections are far fewer than may wait for a cell (pool.c): with
 * all of them waiting there is room for the workers. */
const struct program programs[PROGRAMS] = {
	[PROGRAM_WORKER] = { .name = "il-worker",
	    .socket = SOCKET_BROKER_WORKER,
	    .commands = MAY(LEASE) | MAY(CREATE) | MAY(REMOVE) | MAY(STATUS),
	    .connections = 1200 },
	[PROGRAM_API] = { .name = "il-api",
	    .socket = SOCKET_BROKER_API,
	    .commands = MAY(LEASE) | MAY(RESERVE) | MAY(STATUS),
	    .connections = 256 },
	[PROGRAM_CTL] = { .name = "ilctl",
	    .socket = SOCKET_BROKER_CTL,
	    .commands = MAY(REMOVE) | MAY(STATUS),
	    .connections = 16 },
};

/* What clients may send at all. */
static const struct {
	enum frame_kind kind;
	const char *name;
} commands[] = {
	{ FRAME_LEASE, "LEASE" },
	{ FRAME_CREATE, "CREATE" },
	{ FRAME_REMOVE, "REMOVE" },
	{ FRAME_RESERVE, "RESERVE" },
	{ FRAME_STATUS, "STATUS" },
};

/* A budget that several classes share is counted several times, which harms
 * none. */
size_t
program_connections(enum program_name name, const struct config *config)
{
	size_t count = programs[name].connections;
	const struct cell_class *class;

	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		if (class->program == name)
			count += (size_t)class_budget(class->budget, config);
	}
	return count;
}

/* The frame's kind first, then, for a lease, the class. */
bool
program_may(enum program_name name, const struct frame_view *view,
    const char **what)
{
	const struct cell_class *class;
	char text[CLASS_NAME_MAX];

	*what = "what is not for the broker";
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].kind == view->kind)
			*what = commands[i].name;
	}
	if (view->kind > FRAME_RESERVE ||
	    (programs[name].commands & 1U << view->kind) == 0)
		return false;
	if (view->kind != FRAME_LEASE ||
	    !frame_get_text(view, TAG_CLASS, text, sizeof(text)))
		return true;
	class = class_find(text);
	if (class == NULL)
		return true;
	*what = class->name;
	return class->program == name;
}
