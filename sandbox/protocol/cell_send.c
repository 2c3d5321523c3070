/* SPDX-License-Identifier: MIT */
/*
 * How a request is sent to a cell: its head, its pieces, GO; and what the cell
 * may send back for it, counted out.
 */
#include "cell.h"

#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"

/* What is longer is not copied, and waits for none. */
#define SHORT 4096
_Static_assert(FD_PACKETS *SHORT <= FRAME_MAX, "they wait in a frame's place");

static int
cell_flush(struct cell *cell, int64_t deadline, struct err *err)
{
	int sent = fd_send_packets(cell->fd, &cell->waiting,
	    clock_poll_timeout(deadline), err);

	cell->waiting.count = 0;
	return sent;
}

/* A usual request is three short frames, which the cell hears of once. */
static int
cell_send_frame(struct cell *cell, const struct frame *frame, int64_t deadline,
    struct err *err)
{
	struct fd_packets *waiting = &cell->waiting;
	struct iovec *next;

	if (frame->overflow)
		return err_set(err, ERR_LIMIT, "the request is too long");
	if ((frame->len > SHORT || waiting->count == FD_PACKETS) &&
	    cell_flush(cell, deadline, err) != 0)
		return -1;
	if (frame->len > SHORT)
		return fd_send_packet(cell->fd, frame->data, frame->len, -1,
		    clock_poll_timeout(deadline), err);
	next = &waiting->parts[waiting->count];
	next->iov_base = cell->packet + waiting->count * SHORT;
	next->iov_len = frame->len;
	memcpy(next->iov_base, frame->data, frame->len);
	waiting->count++;
	return 0;
}

/* GO, on which the end of a pipe may ride. */
static int
cell_send_go(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	struct frame frame;

	frame_start(&frame, FRAME_GO);
	if (!request->live)
		return cell_send_frame(cell, &frame, deadline, err) != 0 ?
		    -1 :
		    cell_flush(cell, deadline, err);
	if (cell_flush(cell, deadline, err) != 0)
		return -1;
	return fd_send_packet(cell->fd, frame.data, frame.len, request->live_fd,
	    clock_poll_timeout(deadline), err);
}

static void
add_text(struct frame *frame, enum frame_tag tag, const char *text)
{
	if (text != NULL)
		frame_add_text(frame, tag, text);
}

/* Zero and false are what an absent field means. */
static void
add_int(struct frame *frame, enum frame_tag tag, int64_t value)
{
	if (value != 0)
		frame_add_int(frame, tag, value);
}

static void
cell_build_head(struct frame *frame, const struct cell_request *request)
{
	frame_start(frame, FRAME_REQUEST);
	frame_add_int(frame, TAG_OP, request->op);
	add_text(frame, TAG_PATH, request->path);
	add_text(frame, TAG_CWD, request->cwd);
	add_text(frame, TAG_NAME, request->name);
	for (size_t i = 0; request->args != NULL && request->args[i] != NULL;
	     i++)
		frame_add_text(frame, TAG_ARG, request->args[i]);
	add_int(frame, TAG_ECHO, request->echo);
	add_int(frame, TAG_KEEP, request->keep);
	add_int(frame, TAG_MERGE, request->merge);
	add_int(frame, TAG_RECURSIVE, request->recursive);
	add_int(frame, TAG_CUT, request->cut);
	add_int(frame, TAG_WALL_MS, request->wall_ms);
	add_int(frame, TAG_OUTPUT_MAX, request->output_max);
	add_int(frame, TAG_COLLECT_FILES, request->collect_files);
	add_int(frame, TAG_COLLECT_BYTES, request->collect_bytes);
	add_int(frame, TAG_COLLECT_TOTAL, request->collect_total);
	add_int(frame, TAG_OFFSET, request->offset);
	add_int(frame, TAG_COUNT, request->count);
	add_int(frame, TAG_MAX_BYTES, request->max_bytes);
	/* What only api and session cells know. */
	add_text(frame, TAG_FOLDER, request->folder);
	for (size_t i = 0; request->env != NULL && request->env[i] != NULL; i++)
		frame_add_text(frame, TAG_ENV, request->env[i]);
	add_int(frame, TAG_DISPLAY, request->display);
	add_int(frame, TAG_END_ALL, request->end_all);
	add_int(frame, TAG_PLAIN, request->plain);
	add_int(frame, TAG_LIVE, request->live);
	add_int(frame, TAG_LIMIT_MEMORY, request->limit_memory);
	add_int(frame, TAG_LIMIT_PROCESSES, request->limit_processes);
	add_int(frame, TAG_LIMIT_FILES, request->limit_files);
	add_int(frame, TAG_LIMIT_CPU, request->limit_cpu);
	add_int(frame, TAG_OUTPUT_MODE, request->output_mode);
	add_int(frame, TAG_COLLECT_HOW, request->collect_how);
	add_int(frame, TAG_COLLECT_MS, request->collect_ms);
}

/* Nothing is sent for an empty part: absent and empty mean the same. */
static int
cell_send_part(struct cell *cell, enum frame_part part, const char *data,
    size_t len, int64_t deadline, struct err *err)
{
	struct frame frame;

	for (size_t at = 0; data != NULL && at < len; at += FRAME_CHUNK) {
		size_t piece = len - at < FRAME_CHUNK ? len - at : FRAME_CHUNK;

		frame_start(&frame, FRAME_BYTES);
		frame_add_int(&frame, TAG_PART, part);
		frame_add_bytes(&frame, TAG_DATA, data + at, piece);
		if (cell_send_frame(cell, &frame, deadline, err) != 0)
			return -1;
	}
	return 0;
}

/* The words of a command line.  They may be long, so they do not travel in the
 * head; they may be many, so they share their frames. */
static int
cell_send_words(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	auto_buf struct buf words = BUF_INIT(SIZE_MAX / 2);

	for (size_t i = 0; i < request->word_count; i++) {
		const struct cell_bytes *word = &request->words[i];

		if (word->len > 0 &&
		    memchr(word->data, '\0', word->len) != NULL)
			return err_set(err, ERR_INPUT, "a NUL in a word");
		buf_add(&words, word->data, word->len);
		buf_addc(&words, '\0');
	}
	return cell_send_part(cell, PART_ARGS, words.data, words.len, deadline,
	    err);
}

static int
cell_send_inputs(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	struct frame frame;

	for (size_t i = 0; i < request->input_count; i++) {
		const struct cell_input *input = &request->inputs[i];

		frame_start(&frame, FRAME_INPUT);
		frame_add_text(&frame, TAG_PATH, input->path);
		add_int(&frame, TAG_MODE, input->mode);
		if (input->mtime >= 0)
			frame_add_int(&frame, TAG_MTIME, input->mtime);
		add_int(&frame, TAG_ALWAYS, input->always);
		if (cell_send_frame(cell, &frame, deadline, err) != 0 ||
		    cell_send_part(cell, PART_CONTENT, input->content.data,
			input->content.len, deadline, err) != 0)
			return -1;
	}
	return 0;
}

/* What the cell may send back, as counts. */
static void
cell_expect(struct cell *cell, const struct cell_request *request)
{
	bool run = request->op == OP_RUN || request->op == OP_BASH;
	bool archive = request->op == OP_ARCHIVE;

	cell->in_request = true;
	cell->started = false;
	cell->file_left = 0;
	cell->output_left = request->output_max;
	if (request->output_mode == OUTPUT_DRAIN)
		cell->output_left *= 2; /* it is the limit of each stream */
	cell->entries_left = request->op == OP_LIST ? request->count :
	    request->op == OP_STAT		    ? 1 :
						      0;
	cell->files_left = run		      ? request->collect_files :
	    request->op == OP_READ || archive ? 1 :
						0;
	cell->bytes_left = run ? request->collect_total : request->max_bytes;
	cell->left_out_left = run || archive ? LIMIT_LEFT_OUT_TAKEN : 0;
}

int
cell_send(struct cell *cell, const struct cell_request *request, int timeout_ms,
    struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + timeout_ms;
	struct frame frame;

	if (cell->in_request)
		return err_set(err, ERR_BUSY, "the cell has a request already");
	cell->waiting.count = 0;
	cell_build_head(&frame, request);
	if (cell_send_frame(cell, &frame, deadline, err) != 0 ||
	    cell_send_part(cell, PART_SOURCE, request->source,
		request->source_len, deadline, err) != 0 ||
	    cell_send_part(cell, PART_STDIN, request->input, request->input_len,
		deadline, err) != 0 ||
	    cell_send_part(cell, PART_CONTENT, request->content,
		request->content_len, deadline, err) != 0 ||
	    cell_send_words(cell, request, deadline, err) != 0 ||
	    cell_send_inputs(cell, request, deadline, err) != 0 ||
	    cell_send_go(cell, request, deadline, err) != 0)
		return -1;
	cell_expect(cell, request);
	return 0;
}

void
cell_enough(struct cell *cell)
{
	struct frame frame;
	struct err err;

	/* A cell that takes it not ends the run by its other limits. */
	frame_start(&frame, FRAME_ENOUGH);
	(void)fd_send_packet(cell->fd, frame.data, frame.len, -1, 0, &err);
}

void
cell_signal(struct cell *cell, int number)
{
	struct frame frame;
	struct err err;

	/* It may be over by now. */
	frame_start(&frame, FRAME_SIGNAL);
	frame_add_int(&frame, TAG_SIGNAL, number);
	(void)fd_send_packet(cell->fd, frame.data, frame.len, -1, 0, &err);
}
