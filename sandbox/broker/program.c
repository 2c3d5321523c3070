#include "program.h"

#include <string.h>

#include "../protocol/frame.h"
#include "../protocol/sockets.h"
#include "class.h"

/* il-api's connections are far fewer than may wait for a cell (pool.c): with
 * all of them waiting there is room for the workers. */
const struct program programs[PROGRAMS] = {
	{ .name = "il-worker",
	    .socket = SOCKET_BROKER_WORKER,
	    .commands = { FRAME_LEASE, FRAME_CREATE, FRAME_REMOVE,
		FRAME_STATUS },
	    .classes = { "user", "pip", "packages" },
	    .connections = 1200 },
	{ .name = "il-api",
	    .socket = SOCKET_BROKER_API,
	    .commands = { FRAME_LEASE, FRAME_RESERVE, FRAME_STATUS },
	    .classes = { "api", "session" },
	    .connections = 256 },
	{ .name = "ilctl",
	    .socket = SOCKET_BROKER_CTL,
	    .commands = { FRAME_REMOVE, FRAME_STATUS },
	    .connections = 16 },
};

/* A budget that two classes share would be counted twice, which harms none. */
size_t
program_connections(const struct program *program, const struct config *config)
{
	size_t count = program->connections;

	for (size_t i = 0; i < PROGRAM_CLASSES && program->classes[i] != NULL;
	     i++)
		count += (size_t)
		    class_budget(class_find(program->classes[i])->budget,
			config);
	return count;
}

/* NULL: no client of ours may send it. */
static const char *
command_name(enum frame_kind kind)
{
	if (kind == FRAME_LEASE)
		return "LEASE";
	if (kind == FRAME_CREATE)
		return "CREATE";
	if (kind == FRAME_REMOVE)
		return "REMOVE";
	if (kind == FRAME_RESERVE)
		return "RESERVE";
	return kind == FRAME_STATUS ? "STATUS" : NULL;
}

static bool
may_command(const struct program *program, enum frame_kind kind)
{
	for (size_t i = 0; i < PROGRAM_COMMANDS; i++) {
		if (program->commands[i] == (int)kind)
			return true;
	}
	return false;
}

static bool
may_class(const struct program *program, const char *class)
{
	for (size_t i = 0; i < PROGRAM_CLASSES && program->classes[i] != NULL;
	     i++) {
		if (strcmp(program->classes[i], class) == 0)
			return true;
	}
	return false;
}

bool
program_may(const struct program *program, const struct frame_view *view,
    const char **what)
{
	const struct cell_class *class;
	char name[CLASS_NAME_MAX];

	*what = command_name(view->kind);
	if (*what == NULL) {
		*what = "what is not for the broker";
		return false;
	}
	if (!may_command(program, view->kind))
		return false;
	if (view->kind != FRAME_LEASE ||
	    !frame_get_text(view, TAG_CLASS, name, sizeof(name)))
		return true;
	class = class_find(name);
	if (class == NULL)
		return true;
	*what = class->name;
	return may_class(program, class->name);
}
