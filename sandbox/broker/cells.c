/* SPDX-License-Identifier: MIT */
/* What cells there are, and what each is at, for `ilctl top`; and an end of
 * those that nobody uses, for `ilctl backup`. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "client.h"

/* The socket holds so many answers of a client that does not read yet. */
#define CELLS_TOLD 200

static const char *const states[] = {
	[CONTAINER_PREPARING] = "preparing",
	[CONTAINER_PREPARED] = "prepared",
	[CONTAINER_STARTING] = "starting",
	[CONTAINER_IDLE] = "idle",
	[CONTAINER_LEASED] = "leased",
	[CONTAINER_RELEASING] = "releasing",
	[CONTAINER_ENDING] = "ending",
	[CONTAINER_GONE] = "gone",
};

/* The first process of a cell, as the kernel says of its pidfd; 0: it is not
 * known, or dead. */
static int64_t
pid_of(const struct container *c)
{
	static const char key[] = "\nPid:\t";
	auto_free char *path = xprintf("/proc/self/fdinfo/%d", c->pidfd);
	auto_close int fd = c->pidfd < 0 ? -1 :
					   open(path, O_RDONLY | O_CLOEXEC);
	char text[512] = "";
	const char *at;
	int64_t pid;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	at = strstr(text, key);
	pid = at == NULL ? 0 : strtoll(at + sizeof(key) - 1, NULL, 10);
	return pid > 0 ? pid : 0;
}

static void
cell_frame(struct frame *frame, const struct container *c)
{
	frame_start(frame, FRAME_GRANTED);
	frame_add_text(frame, TAG_CELL_NAME, c->name);
	frame_add_text(frame, TAG_CLASS, c->class->name);
	frame_add_text(frame, TAG_SANDBOX, c->sandbox);
	frame_add_text(frame, TAG_INTERPRETER, c->interpreter.name);
	frame_add_text(frame, TAG_STATE, states[c->state]);
	frame_add_int(frame, TAG_STATE_MS, clock_monotonic_ms() - c->since_ms);
	frame_add_int(frame, TAG_RUNS, c->runs);
	frame_add_int(frame, TAG_KEPT, c->kept);
	frame_add_int(frame, TAG_PID, pid_of(c));
}

/* That it is granted, a frame for each, and how many there are. */
void
request_cells(struct client *client, const struct frame_view *view)
{
	const struct container *c;
	struct frame frame;
	int64_t count = 0;
	bool sent;

	(void)view;
	frame_start(&frame, FRAME_GRANTED);
	sent = client_send(client, &frame, -1);
	TAILQ_FOREACH(c, &client->clients->host->pool->containers, link) {
		if (count++ >= CELLS_TOLD || !sent)
			continue;
		cell_frame(&frame, c);
		sent = client_send(client, &frame, -1);
	}
	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_CELLS, count);
	if (sent)
		(void)client_send(client, &frame, -1);
	client_close(client);
}

void
cells_end_idle(const struct client *client)
{
	struct container *c;

	TAILQ_FOREACH(c, &client->clients->host->pool->containers, link) {
		if (c->state != CONTAINER_IDLE ||
		    strcmp(c->sandbox, client->ticket.sandbox) != 0)
			continue;
		if (c->kept)
			kept_end(c, KEPT_GAVE_WAY);
		else
			container_end(c, false);
	}
}
