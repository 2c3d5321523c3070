/* SPDX-License-Identifier: MIT */
/*
 * Packets from a cell.  Two bytes of length stand before each packet of the
 * input; the first byte of all says which request the packets answer.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/basics.h"
#include "protocol/cell.h"

#define OUTPUT_MAX 1000
#define FILES 3
#define BYTES 5000
#define ENTRIES 4

struct seen {
	int64_t output;
	int64_t files;
	int64_t bytes;
	int64_t announced;
	int64_t entries;
};

static void
check_event(const struct cell_event *event, struct seen *seen)
{
	switch (event->kind) {
	case CELL_OUTPUT:
		seen->output += (int64_t)event->len;
		fuzz_holds(event->stream == 1 || event->stream == 2, "stream");
		break;
	case CELL_FILE:
		fuzz_holds(seen->bytes == seen->announced, "whole files");
		fuzz_holds(event->size >= 0 && event->name[0] != '\0' &&
			event->name[0] != '/',
		    "a file has a size and a relative path");
		seen->announced += event->size;
		seen->files++;
		break;
	case CELL_BYTES:
		seen->bytes += (int64_t)event->len;
		break;
	case CELL_ENTRY:
		seen->entries++;
		fuzz_holds(strchr(event->name, '/') == NULL, "a name");
		break;
	case CELL_RESULT:
		fuzz_holds(event->result.status >= 0 &&
			event->result.status <= 255,
		    "status");
		break;
	case CELL_STARTED:
	case CELL_LEFT_OUT:
	case CELL_QUIET:
		break;
	}
	fuzz_holds(seen->output <= OUTPUT_MAX, "output is bounded");
	fuzz_holds(seen->files <= FILES && seen->announced <= BYTES &&
		seen->bytes <= seen->announced,
	    "files are bounded");
	fuzz_holds(seen->entries <= ENTRIES, "entries are bounded");
}

/* All packets are in the socket: take them until it says that it is over. */
static void
take_all(struct cell *cell)
{
	struct seen seen = { 0 };
	struct cell_event event;
	struct err err;

	while (cell_next(cell, &event, 0, &err) == 0 &&
	    event.kind != CELL_QUIET)
		check_event(&event, &seen);
}

static void
feed(int fd, const uint8_t *data, size_t size)
{
	const uint8_t *packet;
	size_t len;

	while (fuzz_next_packet(&data, &size, &packet, &len))
		if (len == 0 || send(fd, packet, len, MSG_DONTWAIT) < 0)
			return;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cell_request request = { .output_max = OUTPUT_MAX,
		.collect_files = FILES,
		.collect_total = BYTES,
		.max_bytes = BYTES,
		.count = ENTRIES };
	static struct cell cell;
	unsigned char sent[FRAME_MAX];
	struct err err;
	int ends[2];

	if (size == 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return 0;
	request.op = (enum cell_op)(OP_RUN + data[0] % OP_ARCHIVE);
	cell_init(&cell, ends[0]);
	if (cell_send(&cell, &request, 1000, &err) == 0) {
		while (recv(ends[1], sent, sizeof(sent), MSG_DONTWAIT) > 0)
			;
		feed(ends[1], data + 1, size - 1);
		(void)shutdown(ends[1], SHUT_WR);
		take_all(&cell);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	return 0;
}
