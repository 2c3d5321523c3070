/* SPDX-License-Identifier: MIT */
#include "snapshot.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/exposition.h"
#include "../base/fd.h"
#include "../base/shared_file.h"
#include "../base/text.h"
#include "frame.h"

#define ANSWER_MAX 1024

/* A refusal's number is an enum err_code of the one who answers. */
static int
refused(const struct frame_view *view, struct err *err)
{
	char text[200] = "";
	int64_t code = 0;

	if (!frame_get_int(view, TAG_CODE, &code) || code <= ERR_NONE ||
	    code > ERR_CONFIG)
		code = ERR_PROTOCOL;
	(void)frame_get_text(view, TAG_TEXT, text, sizeof(text));
	return err_set(err, (enum err_code)code, "il-snapshot: %s", text);
}

/* Send the question to the socket, whose path it frees, take the answer. */
static int
ask(char *socket_path, const struct frame *question, int wait_ms,
    struct frame_view *view, unsigned char packet[ANSWER_MAX], struct err *err)
{
	auto_free char *path = socket_path;
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	auto_close int sock = fd_connect_unix(path, SOCK_SEQPACKET, err);
	ssize_t len;

	if (sock < 0 ||
	    fd_send_packet(sock, question->data, question->len, -1,
		clock_poll_timeout(until_ms), err) != 0)
		return -1;
	len = fd_receive_packet(sock, packet, ANSWER_MAX, NULL,
	    clock_poll_timeout(until_ms), err);
	if (len < 0)
		return -1;
	if (len == 0)
		return err_set(err, ERR_UNAVAILABLE, "il-snapshot hung up");
	if (!frame_parse(view, packet, (size_t)len) ||
	    (view->kind != FRAME_GRANTED && view->kind != FRAME_REFUSED))
		return err_set(err, ERR_PROTOCOL, "il-snapshot says nonsense");
	return view->kind == FRAME_GRANTED ? 0 : refused(view, err);
}

int
snapshot_restore(const struct config *config, const char *from, const char *to,
    int wait_ms, int64_t *time_ms, struct err *err)
{
	unsigned char packet[ANSWER_MAX];
	struct frame question;
	struct frame_view view;
	int64_t seconds;

	frame_start(&question, FRAME_RESTORE);
	frame_add_text(&question, TAG_SANDBOX, to);
	frame_add_bytes(&question, TAG_NAME, from, strlen(from));
	if (ask(config_state_path(config, SOCKET_SNAPSHOT_WORKER), &question,
		wait_ms, &view, packet, err) != 0)
		return -1;
	if (!frame_get_int(&view, TAG_MTIME, &seconds))
		return 1;
	*time_ms = seconds * 1000;
	return 0;
}

static int
forget(const struct config *config, bool ctl, const char *id, int wait_ms,
    struct err *err)
{
	unsigned char packet[ANSWER_MAX];
	struct frame question;
	struct frame_view view;

	frame_start(&question, FRAME_FORGET);
	frame_add_text(&question, TAG_SANDBOX, id);
	return ask(config_state_path(config,
		       ctl ? SOCKET_SNAPSHOT_CTL : SOCKET_SNAPSHOT_WORKER),
	    &question, wait_ms, &view, packet, err);
}

int
snapshot_forget(const struct config *config, bool ctl, const char *id,
    const char *before, int wait_ms, struct err *err)
{
	if (*config->snapshots == '\0')
		return 0;
	if (*before != '\0' && forget(config, ctl, before, wait_ms, err) != 0)
		return -1;
	return forget(config, ctl, id, wait_ms, err);
}

/* ---- a copy of a file ---- */

/* The next packet: what was wanted, or why not. */
static int
hear(struct snapshot_copy *copy, enum frame_kind wanted,
    const struct pollfd *unless, int wait_ms, struct frame_view *view,
    struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	ssize_t len;

	if (!fd_wait_unless(copy->fd, unless, wait_ms))
		return err_set(err, ERR_TIMEOUT, "nobody waits for it");
	len = fd_receive_packet(copy->fd, copy->packet, FRAME_MAX, NULL,
	    clock_poll_timeout(until_ms), err);
	if (len < 0)
		return -1;
	if (len == 0)
		return err_set(err, ERR_UNAVAILABLE, "il-snapshot hung up");
	if (!frame_parse(view, copy->packet, (size_t)len) ||
	    (view->kind != wanted && view->kind != FRAME_REFUSED))
		return err_set(err, ERR_PROTOCOL, "il-snapshot says nonsense");
	return view->kind == wanted ? 0 : refused(view, err);
}

/* The first packet: 1: there is none. */
static int
take_head(struct snapshot_copy *copy, const struct frame_view *view,
    struct err *err)
{
	const unsigned char *note;

	if (!frame_get_int(view, TAG_SIZE, &copy->size))
		return 1;
	if (copy->size < 0 || copy->size > SNAPSHOT_FILE_MAX ||
	    !frame_get_bytes(view, TAG_DATA, &note, &copy->note_len) ||
	    copy->note_len > SNAPSHOT_NOTE_MAX)
		return err_set(err, ERR_PROTOCOL,
		    "il-snapshot gives more than a file can be");
	memcpy(copy->note, note, copy->note_len);
	copy->note[copy->note_len] = '\0';
	copy->left = copy->size;
	return 0;
}

int
snapshot_copy_open(struct snapshot_copy *copy, const struct config *config,
    const char *id, const struct pollfd *unless, int wait_ms, struct err *err)
{
	auto_free char *path = config_state_path(config, SOCKET_SNAPSHOT_API);
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	struct frame question;
	struct frame_view view;

	copy->fd = -1;
	copy->packet = NULL;
	copy->size = copy->left = 0;
	copy->note_len = 0;
	copy->note[0] = '\0';
	if (!text_is_uuid(id, strlen(id)))
		return 1;
	copy->fd = fd_connect_unix(path, SOCK_SEQPACKET, err);
	frame_start(&question, FRAME_COPY);
	frame_add_bytes(&question, TAG_NAME, id, SNAPSHOT_FILE_LEN);
	if (copy->fd < 0 ||
	    fd_send_packet(copy->fd, question.data, question.len, -1,
		clock_poll_timeout(until_ms), err) != 0)
		return -1;
	copy->packet = xmalloc(FRAME_MAX);
	if (hear(copy, FRAME_GRANTED, unless, clock_poll_timeout(until_ms),
		&view, err) != 0)
		return -1;
	return take_head(copy, &view, err);
}

ssize_t
snapshot_copy_next(struct snapshot_copy *copy, const struct pollfd *unless,
    int wait_ms, const unsigned char **data, struct err *err)
{
	struct frame_view view;
	size_t len;

	if (copy->left == 0)
		return 0;
	if (hear(copy, FRAME_BYTES, unless, wait_ms, &view, err) != 0)
		return -1;
	if (!frame_get_bytes(&view, TAG_DATA, data, &len) || len == 0 ||
	    len > FRAME_CHUNK || (int64_t)len > copy->left)
		return err_set(err, ERR_PROTOCOL,
		    "il-snapshot gives more than it said");
	copy->left -= (int64_t)len;
	return (ssize_t)len;
}

void
snapshot_copy_release(struct snapshot_copy *copy)
{
	cleanup_close(&copy->fd);
	free(copy->packet);
	copy->packet = NULL;
}

/* ---- how it is ---- */

struct snapshot_state *
snapshot_state_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, SNAPSHOT_STATE_FILE);

	return shared_file_open(path, sizeof(struct snapshot_state), err);
}

const struct snapshot_state *
snapshot_state_read(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, SNAPSHOT_STATE_FILE);

	return shared_file_read(path, sizeof(struct snapshot_state), err);
}

void
snapshot_state_close(const struct snapshot_state *state)
{
	shared_file_close(state, sizeof(*state));
}

static int64_t
age_us(int64_t since_ms, int64_t now_ms)
{
	return since_ms == 0 || since_ms > now_ms ? 0 :
						    (now_ms - since_ms) * 1000;
}

static void
tell_counter(struct buf *out, const char *name, const char *help, int64_t n)
{
	exposition_head(out, name, "counter", help);
	exposition_number(out, name, "", n);
}

static void
tell_age(struct buf *out, const char *name, const char *help, int64_t us)
{
	exposition_head(out, name, "gauge", help);
	exposition_seconds(out, name, "", us);
}

void
snapshot_state_tell(struct buf *out, const struct snapshot_state *state,
    int64_t now_ms)
{
	exposition_gauge(out, "inline_snapshot_up",
	    "Whether il-snapshot is at work.",
	    now_ms - state->told_ms < SNAPSHOT_SILENCE_MS);
	exposition_gauge(out, "inline_snapshot_waiting",
	    "Sandboxes that are to be saved.", state->waiting);
	tell_age(out, "inline_snapshot_oldest_seconds",
	    "For how long the first of these has waited.",
	    age_us(state->oldest_ms, now_ms));
	tell_age(out, "inline_snapshot_failing_seconds",
	    "For how long nothing could be saved.",
	    age_us(state->failing_ms, now_ms));
	tell_counter(out, "inline_snapshot_saved_total", "Sandboxes saved.",
	    state->saved);
	tell_counter(out, "inline_snapshot_bytes_total",
	    "Bytes written for that, compressed.", state->bytes);
	tell_counter(out, "inline_snapshot_failures_total",
	    "What could not be saved, restored or forgotten.", state->failures);
	tell_counter(out, "inline_snapshot_restored_total",
	    "Sandboxes restored.", state->restored);
	tell_counter(out, "inline_snapshot_files_total",
	    "Files of the HTTP APIs copied.", state->files);
	tell_age(out, "inline_snapshot_files_failing_seconds",
	    "For how long none of these could be copied.",
	    age_us(state->files_failing_ms, now_ms));
}
