/* SPDX-License-Identifier: MIT */
/* Requests to cells of the APIs, as they go out, and what only those cells
 * answer. */
#include "tap.h"

#include <sys/socket.h>

#include "base/basics.h"
#include "protocol/cell.h"

static int ends[2]; /* ours, the cell's */
static struct cell cell;
static unsigned char packet[FRAME_MAX];

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

/* The next frame that went out. */
static enum frame_kind
sent(struct frame_view *view)
{
	ssize_t len = recv(ends[1], packet, sizeof(packet), MSG_DONTWAIT);

	if (len <= 0 || !frame_parse(view, packet, (size_t)len))
		exit(1);
	return view->kind;
}

static void
is_piece(enum frame_part part, const char *data, size_t len)
{
	const unsigned char *got = NULL;
	struct frame_view view;
	int64_t number = 0;
	size_t size = 0;

	is_int(sent(&view), FRAME_BYTES, "a piece");
	ok(frame_get_int(&view, TAG_PART, &number) && number == (int64_t)part,
	    "of this part");
	ok(frame_get_bytes(&view, TAG_DATA, &got, &size), "with data");
	is_mem(got, size, data, len, "which are these");
}

static const struct cell_bytes words[] = { { "-c", 2 }, { "1", 1 },
	{ NULL, 0 } };
static const char *const env[] = { "A=1", "B=", NULL };

static void
test_run(void)
{
	const struct cell_input inputs[] = {
		{ .path = "a/b",
		    .content = { "x\0y", 3 },
		    .mode = 0777,
		    .mtime = -1,
		    .always = true },
		{ .path = "empty", .mtime = 0 },
	};
	const struct cell_request request = { .op = OP_RUN,
		.folder = "/home",
		.env = env,
		.plain = true,
		.words = words,
		.word_count = 3,
		.inputs = inputs,
		.input_count = 2,
		.limit_memory = 5,
		.limit_processes = 6,
		.limit_files = 7,
		.limit_cpu = 8,
		.output_max = 10,
		.output_mode = OUTPUT_DRAIN,
		.collect_how = COLLECT_MTIME | COLLECT_LINKS,
		.collect_ms = 9 };
	static const struct {
		enum frame_tag tag;
		int64_t value;
	} numbers[] = { { TAG_PLAIN, 1 }, { TAG_LIMIT_MEMORY, 5 },
		{ TAG_LIMIT_PROCESSES, 6 }, { TAG_LIMIT_FILES, 7 },
		{ TAG_LIMIT_CPU, 8 }, { TAG_OUTPUT_MODE, 1 },
		{ TAG_COLLECT_HOW, 18 }, { TAG_COLLECT_MS, 9 } };
	struct frame_field field;
	struct frame_view view;
	struct err err;
	int64_t number;
	char text[32];
	size_t entries = 0;
	size_t pos = 0;

	reset();
	is_int(cell_send(&cell, &request, 1000, &err), 0, "a run is sent");
	is_int(sent(&view), FRAME_REQUEST, "its head comes first");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		ok(frame_get_int(&view, numbers[i].tag, &number) &&
			number == numbers[i].value,
		    "with its numbers");
	ok(frame_get_text(&view, TAG_FOLDER, text, sizeof(text)), "a folder");
	is_str(text, "/home", "which is this");
	while (frame_next(&view, &pos, &field)) {
		if (field.tag == TAG_ENV && entries < 2)
			is_mem(field.data, field.len, env[entries],
			    strlen(env[entries]),
			    "an entry of the environment");
		entries += field.tag == TAG_ENV;
	}
	is_int((int64_t)entries, 2, "two of them");
	is_piece(PART_ARGS, "-c\0001\0", 6);
	is_int(sent(&view), FRAME_INPUT, "a file");
	ok(frame_get_int(&view, TAG_MODE, &number) && number == 0777, "mode");
	ok(frame_get_int(&view, TAG_ALWAYS, &number), "in any case");
	ok(!frame_get_int(&view, TAG_MTIME, &number), "of now");
	is_piece(PART_CONTENT, "x\0y", 3);
	is_int(sent(&view), FRAME_INPUT, "a file");
	ok(frame_get_int(&view, TAG_MTIME, &number) && number == 0, "of 1970");
	is_int(sent(&view), FRAME_GO, "and go");
}

static void
test_nul(void)
{
	const struct cell_bytes bad = { "a\0b", 3 };
	const struct cell_request request = {
		.op = OP_RUN, .words = &bad, .word_count = 1
	};
	struct err err = { 0 };

	reset();
	is_int(cell_send(&cell, &request, 1000, &err), -1, "a NUL in a word");
	is_int(err.code, ERR_INPUT, "is wrong");
}

/* So many bytes may come for an OUTPUT_MAX of 10. */
static void
is_bounded(enum output_mode mode, int times)
{
	const struct cell_request request = {
		.op = OP_RUN, .output_max = 10, .output_mode = mode
	};
	struct cell_event event;
	struct frame frame;
	struct err err;
	int good = 0;

	reset();
	(void)cell_send(&cell, &request, 1000, &err);
	frame_start(&frame, FRAME_OUTPUT);
	frame_add_int(&frame, TAG_STREAM, 1);
	frame_add_bytes(&frame, TAG_DATA, "0123456789", 10);
	for (int i = 0; i < 3; i++)
		(void)send(ends[1], frame.data, frame.len, 0);
	while (cell_next(&cell, &event, clock_monotonic_ms(), &err) == 0)
		good++;
	is_int(good, times, "output is bounded");
}

static void
test_result(void)
{
	const struct cell_request request = { .op = OP_STAGE };
	struct cell_event event;
	struct frame frame;
	struct err err;

	reset();
	(void)cell_send(&cell, &request, 1000, &err);
	frame_start(&frame, FRAME_RESULT);
	frame_add_int(&frame, TAG_REASON, REASON_ERROR);
	frame_add_int(&frame, TAG_CODE, ERROR_NO_SPACE);
	frame_add_text(&frame, TAG_PATH, "a/b");
	frame_add_int(&frame, TAG_CUT, 1);
	(void)send(ends[1], frame.data, frame.len, 0);
	is_int(cell_next(&cell, &event, clock_monotonic_ms() + 1000, &err), 0,
	    "a result");
	is_str(event.result.error_path, "a/b", "tells of a file");
	ok(event.result.cut, "and that there may be more");
}

/* Words share their frames, and one may need several. */
static void
test_long_words(void)
{
	static char text[FRAME_CHUNK];
	const struct cell_bytes many[] = { { "a", 1 }, { text, sizeof(text) },
		{ text, sizeof(text) - 4 } };
	const struct cell_request request = {
		.op = OP_RUN, .words = many, .word_count = 3
	};
	struct frame_view view;
	struct err err;

	memset(text, 'x', sizeof(text));
	reset();
	is_int(cell_send(&cell, &request, 1000, &err), 0, "words are sent");
	is_int(sent(&view), FRAME_REQUEST, "after the head");
	memcpy(text, "a", 2);
	is_piece(PART_ARGS, text, sizeof(text));
	memcpy(text, "xx", 2);
	text[2] = '\0';
	text[sizeof(text) - 1] = '\0';
	is_piece(PART_ARGS, text, sizeof(text));
	is_int(sent(&view), FRAME_GO, "and no more");
}

static void
test_enough(void)
{
	struct frame_view view;

	reset();
	cell_enough(&cell);
	is_int(sent(&view), FRAME_ENOUGH, "enough is told");
	is_int((int64_t)view.len, 1, "and nothing with it");
}

int
main(void)
{
	test_run();
	test_nul();
	is_bounded(OUTPUT_END, 1);
	is_bounded(OUTPUT_DRAIN, 2);
	test_result();
	test_enough();
	test_long_words();
	reset();
	return tap_done();
}
