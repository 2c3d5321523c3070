/* SPDX-License-Identifier: MIT */
#include "protocol/cell.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/basics.h"
#include "base/fd.h"
#include "protocol/lease.h"

#define SIZE_SANE ((int64_t)1 << 48) /* no file, no duration is larger */

void
cell_init(struct cell *cell, int fd)
{
	cell->fd = fd;
	cell->in_request = false;
	cell->started = false;
	cell->file_left = 0;
}

/* ---- sending a request: its head, its pieces, GO ---- */

/* A longer frame is not copied, and waits for no other one. */
#define SHORT 4096
_Static_assert(FD_PACKETS *SHORT <= FRAME_MAX, "they wait in a frame's place");

static int
cell_flush(struct cell *cell, struct err *err)
{
	int sent = fd_send_packets(cell->fd, &cell->waiting,
	    clock_poll_timeout(cell->send_until_ms), err);

	cell->waiting.count = 0;
	return sent;
}

/* A usual request is three short frames, which the cell hears of once. */
static int
cell_send_frame(struct cell *cell, const struct frame *frame, struct err *err)
{
	struct fd_packets *waiting = &cell->waiting;
	struct iovec *next;

	if (frame->overflow)
		return err_set(err, ERR_LIMIT, "the request is too long");
	if ((frame->len > SHORT || waiting->count == FD_PACKETS) &&
	    cell_flush(cell, err) != 0)
		return -1;
	if (frame->len > SHORT)
		return fd_send_packet(cell->fd, frame->data, frame->len, -1,
		    clock_poll_timeout(cell->send_until_ms), err);
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
    struct err *err)
{
	struct frame frame;

	frame_start(&frame, FRAME_GO);
	if (!request->live)
		return cell_send_frame(cell, &frame, err) != 0 ?
		    -1 :
		    cell_flush(cell, err);
	if (cell_flush(cell, err) != 0)
		return -1;
	return fd_send_packet(cell->fd, frame.data, frame.len, request->live_fd,
	    clock_poll_timeout(cell->send_until_ms), err);
}

static void
cell_add_texts(struct frame *frame, enum frame_tag tag,
    const char *const *texts)
{
	for (; texts != NULL && *texts != NULL; texts++)
		frame_add_text(frame, tag, *texts);
}

static void
cell_build_head(struct frame *frame, const struct cell_request *request)
{
	frame_start(frame, FRAME_REQUEST);
	frame_add_int(frame, TAG_OP, request->op);
#define TEXT(member, tag) frame_add_text(frame, TAG_##tag, request->member);
#define TEXTS(member, tag) cell_add_texts(frame, TAG_##tag, request->member);
#define NUMBER(type, member, tag) \
	frame_add_nonzero(frame, TAG_##tag, request->member);
#include "protocol/cell.def"
}

/* Nothing is sent for an empty part: absent and empty mean the same. */
static int
cell_send_part(struct cell *cell, enum frame_part part, const char *data,
    size_t len, struct err *err)
{
	struct frame frame;

	for (size_t at = 0; data != NULL && at < len; at += FRAME_CHUNK) {
		size_t piece = len - at < FRAME_CHUNK ? len - at : FRAME_CHUNK;

		frame_start(&frame, FRAME_BYTES);
		frame_add_int(&frame, TAG_PART, part);
		frame_add_bytes(&frame, TAG_DATA, data + at, piece);
		if (cell_send_frame(cell, &frame, err) != 0)
			return -1;
	}
	return 0;
}

/* The words of a command line.  They may be long, so they do not travel in the
 * head; they may be many, so they share their frames. */
static int
cell_send_words(struct cell *cell, const struct cell_request *request,
    struct err *err)
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
	return cell_send_part(cell, PART_ARGS, words.data, words.len, err);
}

static int
cell_send_inputs(struct cell *cell, const struct cell_request *request,
    struct err *err)
{
	struct frame frame;

	for (size_t i = 0; i < request->input_count; i++) {
		const struct cell_input *input = &request->inputs[i];

		frame_start(&frame, FRAME_INPUT);
		frame_add_text(&frame, TAG_PATH, input->path);
		frame_add_nonzero(&frame, TAG_MODE, input->mode);
		if (input->mtime >= 0)
			frame_add_int(&frame, TAG_MTIME, input->mtime);
		frame_add_nonzero(&frame, TAG_ALWAYS, input->always);
		if (cell_send_frame(cell, &frame, err) != 0 ||
		    cell_send_part(cell, PART_CONTENT, input->content.data,
			input->content.len, err) != 0)
			return -1;
	}
	return 0;
}

/* Count what the cell may send back. */
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
	struct frame frame;

	if (cell->in_request)
		return err_set(err, ERR_BUSY, "the cell has a request already");
	cell->waiting.count = 0;
	cell->send_until_ms = clock_monotonic_ms() + timeout_ms;
	cell_build_head(&frame, request);
	if (cell_send_frame(cell, &frame, err) != 0 ||
	    cell_send_part(cell, PART_SOURCE, request->source,
		request->source_len, err) != 0 ||
	    cell_send_part(cell, PART_STDIN, request->input, request->input_len,
		err) != 0 ||
	    cell_send_part(cell, PART_CONTENT, request->content,
		request->content_len, err) != 0 ||
	    cell_send_words(cell, request, err) != 0 ||
	    cell_send_inputs(cell, request, err) != 0 ||
	    cell_send_go(cell, request, err) != 0)
		return -1;
	cell_expect(cell, request);
	return 0;
}

/* A cell that takes it not ends the run by its other limits; the run may be
 * over by now. */
static void
cell_interrupt(struct cell *cell, enum frame_kind kind, int number)
{
	struct frame frame;
	struct err err;

	frame_start(&frame, kind);
	frame_add_nonzero(&frame, TAG_SIGNAL, number);
	(void)fd_send_packet(cell->fd, frame.data, frame.len, -1, 0, &err);
}

void
cell_enough(struct cell *cell)
{
	cell_interrupt(cell, FRAME_ENOUGH, 0);
}

void
cell_signal(struct cell *cell, int number)
{
	cell_interrupt(cell, FRAME_SIGNAL, number);
}

/* ---- reading what comes back: hostile ---- */

/* An integer within bounds; the default when it is absent (and there is one:
 * a default below min means that the field must be there). */
static bool
get_bounded(const struct frame_view *view, enum frame_tag tag, int64_t min,
    int64_t max, int64_t absent, int64_t *value)
{
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, tag, &data, &len)) {
		*value = absent;
		return absent >= min;
	}
	return frame_get_int(view, tag, value) && *value >= min &&
	    *value <= max;
}

/* Relative, and no component that could lead elsewhere. */
static bool
is_plain_path(const char *path)
{
	while (true) {
		size_t len = strcspn(path, "/");

		if (len == 0 || len > LIMIT_NAME ||
		    (path[0] == '.' &&
			(len == 1 || (len == 2 && path[1] == '.'))))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

static bool
cell_read_chunk(const struct frame_view *view, struct cell_event *event,
    int64_t *left)
{
	if (!frame_get_bytes(view, TAG_DATA, &event->data, &event->len) ||
	    event->len == 0 || event->len > FRAME_CHUNK ||
	    (int64_t)event->len > *left)
		return false;
	*left -= (int64_t)event->len;
	return true;
}

/* Read what is said of a file: its name or relative path, neither empty nor
 * with a NUL; its size, which must be there where `absent` is -1. */
static bool
cell_read_named(const struct frame_view *view, enum frame_tag tag,
    int64_t absent, int64_t size_most, struct cell_event *event)
{
	int64_t displayed;

	if (!frame_get_text(view, tag, event->name, sizeof(event->name)) ||
	    !get_bounded(view, TAG_DISPLAYED, 0, 1, 0, &displayed) ||
	    !get_bounded(view, TAG_SIZE, 0, size_most, absent, &event->size) ||
	    !get_bounded(view, TAG_MTIME, INT64_MIN, INT64_MAX, 0,
		&event->mtime))
		return false;
	event->displayed = displayed == 1;
	return tag == TAG_PATH ?
	    is_plain_path(event->name) :
	    event->name[0] != '\0' && strlen(event->name) <= LIMIT_NAME &&
		strchr(event->name, '/') == NULL;
}

static bool
cell_read_entry(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t kind;

	event->kind = CELL_ENTRY;
	if (cell->entries_left-- <= 0 ||
	    !cell_read_named(view, TAG_NAME, 0, INT64_MAX, event) ||
	    !get_bounded(view, TAG_KIND, ENTRY_FILE, ENTRY_OTHER, 0, &kind))
		return false;
	event->entry_kind = (enum entry_kind)kind;
	return true;
}

static bool
cell_read_file(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	event->kind = CELL_FILE;
	if (cell->files_left-- <= 0 ||
	    !cell_read_named(view, TAG_PATH, -1, cell->bytes_left, event))
		return false;
	cell->bytes_left -= event->size;
	cell->file_left = event->size;
	return true;
}

static bool
cell_read_left_out(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t why;

	event->kind = CELL_LEFT_OUT;
	if (cell->left_out_left-- <= 0 ||
	    !cell_read_named(view, TAG_PATH, 0, INT64_MAX, event) ||
	    !get_bounded(view, TAG_WHY, LEFT_OUT_COUNT, LEFT_OUT_GONE, 0, &why))
		return false;
	event->why = (enum left_out)why;
	return true;
}

static bool
cell_read_fields(const struct frame_view *view, struct cell_result *r)
{
	int64_t value;

#define RESULT(type, member, tag, least, most, absent) \
	if (!get_bounded(view, TAG_##tag, least, most, absent, &value)) \
		return false; \
	r->member = (type)value;
#include "protocol/cell.def"
	return true;
}

static bool
cell_read_result(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	struct cell_result *r = &event->result;
	const unsigned char *text;
	int64_t error = 0;
	size_t len;

	event->kind = CELL_RESULT;
	if (!cell_read_fields(view, r) ||
	    (r->reason == REASON_SIGNAL &&
		!get_bounded(view, TAG_SIGNAL, 1, 64, 0, &r->signal)) ||
	    (r->reason == REASON_ERROR &&
		!get_bounded(view, TAG_CODE, ERROR_NOT_INSIDE, ERROR_READ_ONLY,
		    0, &error)) ||
	    !get_bounded(view, error == ERROR_TOO_LARGE ? TAG_SIZE : TAG_TOTAL,
		0, INT64_MAX, 0, &r->total))
		return false;
	r->error = (enum cell_error)error;
	/* For a log: at most what fits, and up to a NUL. */
	if (frame_get_bytes(view, TAG_TEXT, &text, &len))
		memcpy(r->error_text, text,
		    len < sizeof(r->error_text) ? len :
						  sizeof(r->error_text) - 1);
	/* Of a staged file; what is no such path is not taken over. */
	(void)frame_get_text(view, TAG_PATH, r->error_path,
	    sizeof(r->error_path));
	cell->in_request = false;
	return true;
}

/* event is all zeros. */
static bool
cell_read_event(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	/* A file's bytes follow it without a gap, and all of them. */
	if (!cell->in_request ||
	    (cell->file_left > 0) != (view->kind == FRAME_BYTES))
		return false;
	if (view->kind == FRAME_STARTED && !cell->started) {
		event->kind = CELL_STARTED;
		cell->started = true;
		return true;
	}
	if (view->kind == FRAME_OUTPUT) {
		event->kind = CELL_OUTPUT;
		return get_bounded(view, TAG_STREAM, 1, 2, 0, &event->stream) &&
		    cell_read_chunk(view, event, &cell->output_left);
	}
	if (view->kind == FRAME_ENTRY)
		return cell_read_entry(cell, view, event);
	if (view->kind == FRAME_FILE)
		return cell_read_file(cell, view, event);
	if (view->kind == FRAME_BYTES) {
		event->kind = CELL_BYTES;
		return cell_read_chunk(view, event, &cell->file_left);
	}
	if (view->kind == FRAME_LEFT_OUT)
		return cell_read_left_out(cell, view, event);
	if (view->kind == FRAME_RESULT)
		return cell_read_result(cell, view, event);
	return false;
}

int
cell_next(struct cell *cell, struct cell_event *event, int64_t deadline_ms,
    struct err *err)
{
	struct frame_view view;
	struct err why;
	ssize_t len = fd_receive_packet(cell->fd, cell->packet,
	    sizeof(cell->packet), NULL, clock_poll_timeout(deadline_ms), &why);

	memset(event, 0, sizeof(*event));
	if (len < 0 && why.code == ERR_TIMEOUT) {
		event->kind = CELL_QUIET;
		return 0;
	}
	if (len < 0)
		return err_set(err, ERR_PROTOCOL, "the cell: %s", why.text);
	if (len == 0)
		return err_set(err, ERR_PROTOCOL, "the cell is gone");
	if (!frame_parse(&view, cell->packet, (size_t)len))
		return err_set(err, ERR_PROTOCOL, "the cell sent no frame");
	if (!cell_read_event(cell, &view, event))
		return err_set(err, ERR_PROTOCOL,
		    "the cell sent a frame of kind %d that has no place here",
		    (int)view.kind);
	return 0;
}

/* ---- a conversation ---- */

/* State of the loop. */
struct wait {
	struct conversation *c;
	struct cell cell;
	const struct pollfd *stop;   /* NULL: it has happened */
	const struct pollfd *cancel; /* the same */
	int64_t since_us;
	int64_t deadline_ms;
	int64_t tick_at_ms; /* INT64_MAX: never */
	bool told;	    /* that it is enough */
	bool stopped;	    /* deadline_ms is that of an early end */
};

/* From now on the cell has so long at most. */
static void
conversation_end_within(struct wait *wait, int64_t ms)
{
	int64_t until_ms = clock_monotonic_ms() + ms;

	if (until_ms >= wait->deadline_ms)
		return;
	wait->deadline_ms = until_ms;
	wait->stopped = true;
}

/* Everything that waits for its time; returns when the next thing does. */
static int64_t
keep_time(struct wait *wait)
{
	const struct conversation *c = wait->c;

	if (c->tick != NULL && clock_monotonic_ms() >= wait->tick_at_ms) {
		c->tick(c->arg);
		wait->tick_at_ms = clock_monotonic_ms() + c->tick_ms;
	}
	return wait->tick_at_ms < wait->deadline_ms ? wait->tick_at_ms :
						      wait->deadline_ms;
}

/* An event that ends the request early has happened: it is not watched any
 * more. */
static void
conversation_end_early(struct wait *wait, bool stop, bool cancel)
{
	struct conversation *c = wait->c;

	if (stop) {
		wait->stop = NULL;
		conversation_end_within(wait, c->stop_ms);
	}
	if (cancel && c->cancelled(c->arg)) {
		wait->cancel = NULL;
		cell_enough(&wait->cell);
		conversation_end_within(wait, c->cancel_ms);
	}
}

/* The cell is told once that it is enough. */
static void
tell_enough(struct wait *wait)
{
	if (wait->c->enough && !wait->told)
		cell_enough(&wait->cell);
	wait->told = wait->c->enough;
}

/* True when the cell has sent something, false when the deadline has passed or
 * nobody waits any more. */
static bool
conversation_wait(struct wait *wait)
{
	const struct conversation *c = wait->c;

	while (!c->hang_up && clock_monotonic_ms() < wait->deadline_ms) {
		int64_t until_ms = keep_time(wait);
		int others = 0;
		struct pollfd fds[3 + CONVERSATION_OTHERS] = {
			{ .fd = wait->cell.fd, .events = POLLIN },
			{ .fd = -1 },
			{ .fd = -1 },
		};

		if (wait->cancel != NULL)
			fds[1] = *wait->cancel;
		if (wait->stop != NULL)
			fds[2] = *wait->stop;
		for (size_t i = 0; i < c->other_count; i++)
			fds[3 + i] = c->others[i];
		if (poll(fds, 3 + c->other_count,
			clock_poll_timeout(until_ms)) <= 0)
			continue;
		if (fds[1].revents != 0 || fds[2].revents != 0) {
			conversation_end_early(wait, fds[2].revents != 0,
			    fds[1].revents != 0);
			continue;
		}
		for (size_t i = 0; i < c->other_count; i++)
			others |= fds[3 + i].revents;
		if (others != 0) {
			c->other(c->arg); /* their owner sees to it */
			tell_enough(wait);
		}
		if (fds[0].revents != 0)
			return true;
	}
	return false;
}

/* The cell is gone, with what it still had to tell.  Code can have it that the
 * memory limit takes the cell and not the code: that is how it has ended. */
static enum run_end
conversation_end_lost(const struct wait *wait, struct cell_result *result)
{
	if (!wait->cell.started || wait->cell.file_left > 0 ||
	    !lease_is_out_of_memory(wait->c->broker_fd))
		return RUN_BROKEN;
	wait->c->died = true;
	*result = (struct cell_result){ .reason = REASON_MEMORY,
		.signal = SIGKILL,
		.wall_us = clock_monotonic_us() - wait->since_us,
		.used_bytes = -1,
		.used_files = -1,
		.used_packages = -1 };
	return RUN_RESULT;
}

static enum run_end
conversation_read_events(struct wait *wait, struct cell_result *result,
    struct err *err)
{
	struct conversation *c = wait->c;
	struct cell_event event;

	while (!c->hang_up && conversation_wait(wait)) {
		if (cell_next(&wait->cell, &event, clock_monotonic_ms() + 1,
			err) != 0)
			return conversation_end_lost(wait, result);
		if (event.kind == CELL_QUIET)
			continue;
		c->heard = true;
		if (event.kind == CELL_RESULT) {
			*result = event.result;
			return RUN_RESULT;
		}
		if (c->event != NULL)
			c->event(c->arg, &event);
		tell_enough(wait);
	}
	if (c->hang_up || wait->stopped)
		return RUN_STOPPED;
	(void)err_set(err, ERR_TIMEOUT, "no result in time");
	return RUN_OVERDUE;
}

enum run_end
conversation_hold(struct conversation *c, const struct cell_request *request,
    struct cell_result *result, struct err *err)
{
	auto_free struct wait *wait = xmalloc(sizeof(*wait));
	int64_t now_ms;

	c->enough = c->hang_up = c->heard = c->died = false;
	cell_init(&wait->cell, c->cell_fd);
	if (cell_send(&wait->cell, request, c->send_ms, err) != 0)
		return RUN_BROKEN;
	now_ms = clock_monotonic_ms();
	wait->c = c;
	wait->stop = c->stop;
	wait->stopped = wait->told = false;
	c->cell = &wait->cell;
	wait->since_us = clock_monotonic_us();
	wait->deadline_ms = now_ms + c->within_ms + LIMIT_OUTSIDE_MS;
	wait->cancel = c->cancel;
	wait->tick_at_ms = INT64_MAX;
	if (c->tick != NULL)
		wait->tick_at_ms = now_ms +
		    (c->tick_first_ms != 0 ? c->tick_first_ms : c->tick_ms);
	return conversation_read_events(wait, result, err);
}
