/* SPDX-License-Identifier: MIT */
/* The client's side of a conversation with a cell: what is sent, and that
 * nothing is believed of what comes back. */
#include "tap.h"

#include <sys/socket.h>

#include "base/basics.h"
#include "base/fd.h"
#include "protocol/cell.h"

static int ends[2]; /* ours, the cell's */
static struct cell cell;

static void
reset(void)
{
	for (int i = 0; i < 2; i++) {
		if (ends[i] > 0)
			(void)close(ends[i]);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		exit(1);
	cell_init(&cell, ends[0]);
}

/* A conversation in which the request was sent and taken. */
static void
begin(const struct cell_request *request)
{
	unsigned char packet[FRAME_MAX];
	struct err err;

	reset();
	if (cell_send(&cell, request, 1000, &err) != 0)
		exit(1);
	while (recv(ends[1], packet, sizeof(packet), MSG_DONTWAIT) > 0)
		;
}

static void
begin_run(int64_t output_max, int64_t files, int64_t total)
{
	begin(&(struct cell_request){ .op = OP_RUN,
	    .source = "1",
	    .source_len = 1,
	    .output_max = output_max,
	    .collect_files = files,
	    .collect_bytes = total,
	    .collect_total = total });
}

static void
say(const struct frame *frame)
{
	if (send(ends[1], frame->data, frame->len, 0) != (ssize_t)frame->len)
		exit(1);
}

static int
next(struct cell_event *event)
{
	struct err err = { 0 };
	int rc = cell_next(&cell, event, clock_monotonic_ms() + 50, &err);

	if (rc != 0 && err.code != ERR_PROTOCOL)
		note("%s", err.text);
	return rc != 0 && err.code != ERR_PROTOCOL ? -2 : rc;
}

static void
say_output(int64_t stream, const char *data, size_t len)
{
	struct frame frame;

	frame_start(&frame, FRAME_OUTPUT);
	frame_add_int(&frame, TAG_STREAM, stream);
	frame_add_bytes(&frame, TAG_DATA, data, len);
	say(&frame);
}

static void
say_file(const char *path, int64_t size)
{
	struct frame frame;

	frame_start(&frame, FRAME_FILE);
	frame_add_text(&frame, TAG_PATH, path);
	frame_add_int(&frame, TAG_SIZE, size);
	frame_add_int(&frame, TAG_MTIME, 1);
	say(&frame);
}

static void
say_bytes(const char *data, size_t len)
{
	struct frame frame;

	frame_start(&frame, FRAME_BYTES);
	frame_add_bytes(&frame, TAG_DATA, data, len);
	say(&frame);
}

static void
say_entry(const char *name, int64_t kind)
{
	struct frame frame;

	frame_start(&frame, FRAME_ENTRY);
	frame_add_text(&frame, TAG_NAME, name);
	frame_add_int(&frame, TAG_KIND, kind);
	frame_add_int(&frame, TAG_SIZE, 5);
	say(&frame);
}

static void
say_result(enum frame_tag tag, int64_t value, enum frame_tag tag2,
    int64_t value2)
{
	struct frame frame;

	frame_start(&frame, FRAME_RESULT);
	frame_add_int(&frame, tag, value);
	if (tag2 != tag)
		frame_add_int(&frame, tag2, value2);
	say(&frame);
}

/* ---- requests ---- */

static struct frame_view
heard(unsigned char packet[FRAME_MAX])
{
	ssize_t len = recv(ends[1], packet, FRAME_MAX, MSG_DONTWAIT);
	struct frame_view view = { .kind = 0 };

	if (len > 0)
		ok(frame_parse(&view, packet, (size_t)len), "a frame is sent");
	return view;
}

static void
test_send(void)
{
	static unsigned char packet[FRAME_MAX];
	static char source[FRAME_CHUNK + 5];
	static const char *const args[] = { "a", "", NULL };
	struct cell_request request = { .op = OP_RUN,
		.cwd = "d",
		.source = source,
		.source_len = sizeof(source),
		.input = "in",
		.input_len = 2,
		.args = args,
		.echo = true,
		.wall_ms = 30000 };
	struct frame_view view;
	struct err err;
	int64_t value;
	size_t total = 0;

	reset();
	is_int(cell_send(&cell, &request, 1000, &err), 0, "a request is sent");
	view = heard(packet);
	is_int(view.kind, FRAME_REQUEST, "its head first");
	ok(frame_get_int(&view, TAG_OP, &value) && value == OP_RUN, "what");
	ok(frame_get_int(&view, TAG_WALL_MS, &value) && value == 30000,
	    "how long");
	ok(!frame_get_int(&view, TAG_MERGE, &value), "what is off is absent");
	for (int i = 0; i < 2; i++) {
		const unsigned char *data;
		size_t len = 0;

		view = heard(packet);
		ok(frame_get_bytes(&view, TAG_DATA, &data, &len) &&
			len <= FRAME_CHUNK,
		    "then the source in pieces");
		total += len;
	}
	is_int(total, sizeof(source), "all of it");
	view = heard(packet);
	ok(frame_get_int(&view, TAG_PART, &value) && value == PART_STDIN,
	    "then the input");
	is_int(heard(packet).kind, FRAME_GO, "then GO");
	is_int(cell_send(&cell, &request, 1000, &err), -1,
	    "no second request before the result");
	is_int(err.code, ERR_BUSY, "which is said");
}

/* Short frames leave together, so many at a time, and none is lost. */
static void
test_send_many(void)
{
	static unsigned char packet[FRAME_MAX];
	struct cell_input inputs[2 * FD_PACKETS] = { 0 };
	struct cell_request request = {
		.op = OP_STAGE, .inputs = inputs, .input_count = 2 * FD_PACKETS
	};
	struct frame_view view;
	struct err err;
	char got[3];
	bool good = true;

	for (size_t i = 0; i < 2 * FD_PACKETS; i++)
		inputs[i] = (struct cell_input){ .path = "ab",
			.content = { "x", i % 3 == 0 } };
	reset();
	is_int(cell_send(&cell, &request, 1000, &err), 0, "many short frames");
	is_int(heard(packet).kind, FRAME_REQUEST, "the head is first");
	for (size_t i = 0; i < 2 * FD_PACKETS; i++) {
		view = heard(packet);
		good = good && view.kind == FRAME_INPUT &&
		    frame_get_text(&view, TAG_PATH, got, sizeof(got)) &&
		    strcmp(got, "ab") == 0;
		if (i % 3 == 0)
			good = good && heard(packet).kind == FRAME_BYTES;
	}
	ok(good, "each file, and what is in it");
	is_int(heard(packet).kind, FRAME_GO, "and GO");
}

static void
test_send_fails(void)
{
	static char arg[40000];
	const char *const args[] = { arg, arg, NULL };
	struct cell_request request = { .op = OP_PIP, .args = args };
	static char content[8 << 20];
	struct err err;

	memset(arg, 'x', sizeof(arg) - 1);
	reset();
	is_int(cell_send(&cell, &request, 100, &err), -1, "a head too long");
	is_int(err.code, ERR_LIMIT, "is a limit");
	reset();
	request = (struct cell_request){ .op = OP_WRITE,
		.path = "x",
		.content = content,
		.content_len = sizeof(content) };
	is_int(cell_send(&cell, &request, 100, &err), -1,
	    "a cell that does not read");
	is_int(err.code, ERR_TIMEOUT, "is a timeout");
	reset();
	(void)close(ends[1]);
	ends[1] = 0;
	is_int(cell_send(&cell, &request, 100, &err), -1,
	    "a cell that is gone");
	is_int(err.code, ERR_PROTOCOL, "is a broken protocol");
}

/* ---- answers ---- */

static void
test_run(void)
{
	struct cell_event event;
	struct frame frame;

	begin_run(10, 1, 100);
	is_int(next(&event), 0, "nothing yet");
	is_int(event.kind, CELL_QUIET, "is quiet");
	frame_start(&frame, FRAME_STARTED);
	say(&frame);
	is_int(next(&event) == 0 && event.kind == CELL_STARTED, 1, "started");
	say_output(2, "hello", 5);
	ok(next(&event) == 0 && event.kind == CELL_OUTPUT &&
		event.stream == 2 && event.len == 5 &&
		memcmp(event.data, "hello", 5) == 0,
	    "output");
	say_file("a/b.txt", 3);
	ok(next(&event) == 0 && event.kind == CELL_FILE && event.size == 3,
	    "a file");
	is_str(event.name, "a/b.txt", "its path");
	say_bytes("xyz", 3);
	ok(next(&event) == 0 && event.kind == CELL_BYTES && event.len == 3,
	    "its bytes");
	say_result(TAG_REASON, REASON_EXIT, TAG_STATUS, 7);
	ok(next(&event) == 0 && event.kind == CELL_RESULT, "the result");
	is_int(event.result.status, 7, "its status");
	is_int(event.result.used_bytes, -1, "what was not told is not known");
	ok(!cell.in_request, "the next request may come");
	say_output(1, "late", 4);
	is_int(next(&event), -1, "nothing may come after the result");
}

static void
test_displayed(void)
{
	static const int64_t values[] = { 0, 1, 2, -1 };
	struct cell_event event;
	struct frame frame;

	for (size_t i = 0; i < 4; i++) {
		begin_run(10, 1, 100);
		frame_start(&frame, i < 2 ? FRAME_LEFT_OUT : FRAME_FILE);
		frame_add_text(&frame, TAG_PATH, "picture-1.png");
		frame_add_int(&frame, TAG_SIZE, 5);
		frame_add_int(&frame, TAG_WHY, LEFT_OUT_SIZE);
		frame_add_int(&frame, TAG_DISPLAYED, values[i]);
		say(&frame);
		if (i < 2)
			ok(next(&event) == 0 && event.displayed == (i == 1),
			    "was it displayed?");
		else
			is_int(next(&event), -1, "yes or no");
	}
	begin_run(10, 1, 100);
	say_file("a", 1);
	ok(next(&event) == 0 && !event.displayed, "not said: no");
}

static void
test_hostile_output(void)
{
	static char much[FRAME_CHUNK + 1];
	struct cell_event event;

	begin_run(10, 0, 0);
	say_output(1, "0123456789", 10);
	say_output(1, "x", 1);
	is_int(next(&event), 0, "as much output as was asked for");
	is_int(next(&event), -1, "and no byte more");
	begin_run(1 << 20, 0, 0);
	say_output(3, "x", 1);
	is_int(next(&event), -1, "a third stream");
	begin_run(1 << 20, 0, 0);
	say_output(1, "", 0);
	is_int(next(&event), -1, "output without a byte");
	begin_run(1 << 20, 0, 0);
	say_output(1, much, sizeof(much));
	is_int(next(&event), -1, "a piece too long");
}

static void
test_hostile_files(void)
{
	static const char *const bad[] = { "/etc/passwd", "../x", "a/../b",
		"a//b", "./a", "a/.", "a/" };
	struct cell_event event;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin_run(10, 1, 100);
		say_file(bad[i], 1);
		is_int(next(&event), -1, bad[i]);
	}
	begin_run(10, 1, 100);
	say_file("a", 101);
	is_int(next(&event), -1, "a file larger than all may be");
	begin_run(10, 1, 100);
	say_file("a", -1);
	is_int(next(&event), -1, "a size below zero");
	begin_run(10, 1, 100);
	say_file("a", 0);
	say_file("b", 0);
	is_int(next(&event), 0, "as many files as were asked for");
	is_int(next(&event), -1, "and none more");
	begin_run(10, 2, 100);
	say_file("a", 60);
	say_bytes("x", 1);
	say_file("b", 1);
	is_int(next(&event) + next(&event), 0, "a file that has begun");
	is_int(next(&event), -1, "ends before the next begins");
	begin_run(10, 2, 100);
	say_file("a", 2);
	say_bytes("xyz", 3);
	is_int(next(&event), 0, "a file");
	is_int(next(&event), -1, "never has more bytes than announced");
	begin_run(10, 2, 100);
	say_bytes("xyz", 3);
	is_int(next(&event), -1, "bytes of no file");
}

static void
test_entries(void)
{
	struct cell_event event;

	begin(&(struct cell_request){ .op = OP_LIST, .count = 2 });
	say_entry("\xff\nname", ENTRY_FILE);
	ok(next(&event) == 0 && event.kind == CELL_ENTRY &&
		event.entry_kind == ENTRY_FILE,
	    "an entry of any bytes");
	is_str(event.name, "\xff\nname", "which come through");
	say_entry("b", ENTRY_DIRECTORY);
	say_entry("c", ENTRY_FILE);
	is_int(next(&event), 0, "as many as were asked for");
	is_int(next(&event), -1, "and no more");
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = { "", "a/b", "\1" };

		begin(&(struct cell_request){ .op = OP_LIST, .count = 2 });
		say_entry(bad[i], i == 2 ? 9 : ENTRY_FILE);
		is_int(next(&event), -1, "no name, a path, no kind");
	}
	begin(&(struct cell_request){ .op = OP_LIST, .count = 2 });
	say_result(TAG_REASON, REASON_EXIT, TAG_TOTAL, 17);
	ok(next(&event) == 0 && event.result.total == 17, "the total");
}

static void
test_hostile_results(void)
{
	static const struct {
		enum frame_tag tag;
		int64_t value;
		int64_t reason;
	} bad[] = {
		{ TAG_STATUS, 256, REASON_EXIT },
		{ TAG_STATUS, -1, REASON_EXIT },
		{ TAG_SIGNAL, 0, REASON_SIGNAL },
		{ TAG_SIGNAL, 99, REASON_SIGNAL },
		{ TAG_STATUS, 0, REASON_SIGNAL }, /* and no signal */
		{ TAG_CODE, 0, REASON_ERROR },
		{ TAG_CODE, 99, REASON_ERROR },
		{ TAG_WALL_US, -1, REASON_EXIT },
		{ TAG_CPU_US, INT64_MIN, REASON_EXIT },
		{ TAG_USED_FILES, INT64_MAX, REASON_EXIT },
		{ TAG_DISK_FULL, 3, REASON_EXIT },
		{ TAG_STATUS, 0, 0 },
		{ TAG_STATUS, 0, 7 },
		{ TAG_STATUS, 0, -1 },
	};
	struct cell_event event;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin_run(10, 0, 0);
		say_result(TAG_REASON, bad[i].reason, bad[i].tag, bad[i].value);
		is_int(next(&event), -1, "a result out of bounds");
	}
	begin_run(10, 0, 0);
	say_result(TAG_STATUS, 0, TAG_STATUS, 0);
	is_int(next(&event), -1, "a result without a reason");
	begin(&(struct cell_request){ .op = OP_READ, .max_bytes = 10 });
	say_result(TAG_REASON, REASON_ERROR, TAG_CODE, ERROR_NOT_FOUND);
	ok(next(&event) == 0 && event.result.error == ERROR_NOT_FOUND,
	    "an operation that failed");
}

static void
test_hostile_packets(void)
{
	struct cell_event event;
	struct frame frame;

	begin_run(10, 0, 0);
	(void)send(ends[1], "\xff", 1, 0);
	is_int(next(&event), -1, "not a frame");
	begin_run(10, 0, 0);
	(void)send(ends[1], "\x31\x32\xff\xff\xff\x7f", 6, 0);
	is_int(next(&event), -1, "a length beyond the packet");
	begin_run(10, 0, 0);
	frame_start(&frame, FRAME_GO);
	say(&frame);
	is_int(next(&event), -1, "a frame of ours");
	begin_run(10, 0, 0);
	frame_start(&frame, FRAME_STARTED);
	say(&frame);
	say(&frame);
	is_int(next(&event), 0, "it starts");
	is_int(next(&event), -1, "but once");
	reset();
	say(&frame);
	is_int(next(&event), -1, "nothing was asked for");
	begin_run(10, 0, 0);
	(void)close(ends[1]);
	ends[1] = 0;
	is_int(next(&event), -1, "it is gone");
}

int
main(void)
{
	test_send();
	test_send_many();
	test_send_fails();
	test_run();
	test_displayed();
	test_hostile_output();
	test_hostile_files();
	test_entries();
	test_hostile_results();
	test_hostile_packets();
	reset();
	return tap_done();
}
