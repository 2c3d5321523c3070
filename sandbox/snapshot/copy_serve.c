/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../protocol/frame.h"
#include "copy.h"

#define SEND_MS 15000 /* to take a packet */

struct serving {
	struct store *store;
	int sock;
	bool *begun;
	struct copy_head head;
	struct buf data; /* one object */
};

static int
send_frame(const struct serving *s, const struct frame *frame, struct err *err)
{
	*s->begun = true;
	return fd_send_packet(s->sock, frame->data, frame->len, -1, SEND_MS,
	    err);
}

static int
send_head(const struct serving *s, struct err *err)
{
	struct frame frame;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_SIZE, s->head.size);
	frame_add_bytes(&frame, TAG_DATA, s->head.note, s->head.note_len);
	return send_frame(s, &frame, err);
}

static int
send_part(const struct serving *s, struct err *err)
{
	struct frame frame;

	for (size_t at = 0; at < s->data.len; at += FRAME_CHUNK) {
		size_t rest = s->data.len - at;

		frame_start(&frame, FRAME_BYTES);
		frame_add_bytes(&frame, TAG_DATA, s->data.data + at,
		    rest < FRAME_CHUNK ? rest : FRAME_CHUNK);
		if (send_frame(s, &frame, err) != 0)
			return -1;
	}
	return 0;
}

/* None of its bytes is sent before all of them are as they were. */
static int
get_part(struct serving *s, size_t part, struct err *err)
{
	unsigned char hash[COPY_HASH];
	char name[STORE_NAME_MAX];
	int rc;

	copy_part_name(s->head.id, part, name);
	buf_reset(&s->data);
	rc = store_get(s->store, name, &s->data, err);
	if (rc < 0)
		return -1;
	copy_hash(hash, buf_str(&s->data), s->data.len);
	if (rc == 0 && !s->data.overflow &&
	    s->data.len == copy_part_len(s->head.size, part) &&
	    memcmp(hash, s->head.hashes[part], COPY_HASH) == 0)
		return 0;
	return err_set(err, ERR_INPUT, "the copy is damaged: its part %zu%s",
	    part, rc != 0 ? " is not there" : "");
}

/* 1: there is none. */
static int
get_head(struct serving *s, const char *id, int64_t ttl_ms, struct err *err)
{
	char name[STORE_NAME_MAX];
	int64_t now_ms = clock_wall_ms();
	int rc;

	copy_head_name(id, name);
	rc = store_get(s->store, name, &s->data, err);
	if (rc != 0)
		return rc;
	if (s->data.overflow ||
	    !copy_head_parse(&s->head, buf_str(&s->data), s->data.len, id) ||
	    s->head.used_ms > now_ms + COPY_CLOCKS_MS)
		return err_set(err, ERR_INPUT,
		    "the copy is damaged, or another file's: its head");
	return s->head.used_ms + ttl_ms > now_ms ? 0 : 1;
}

static int
serve(struct serving *s, const char *id, int64_t ttl_ms, struct err *err)
{
	size_t parts;
	struct frame none;
	int rc;

	s->data.max = COPY_HEAD_MAX;
	rc = get_head(s, id, ttl_ms, err);
	if (rc < 0)
		return -1;
	if (rc > 0) {
		frame_start(&none, FRAME_GRANTED);
		return send_frame(s, &none, err) == 0 ? 1 : -1;
	}
	s->data.max = COPY_PART;
	parts = copy_parts(s->head.size);
	/* what is wrong with the first one is told before it begins */
	if ((parts > 0 && get_part(s, 0, err) != 0) || send_head(s, err) != 0)
		return -1;
	for (size_t i = 0; i < parts; i++)
		if ((i > 0 && get_part(s, i, err) != 0) ||
		    send_part(s, err) != 0)
			return -1;
	return 0;
}

int
copy_serve(struct store *store, int sock, const char *id, int64_t ttl_ms,
    bool *begun, struct err *err)
{
	struct serving *s = xcalloc(1, sizeof(*s));
	struct frame no;
	struct err lost;
	int rc;

	*s = (struct serving){ .store = store, .sock = sock, .begun = begun };
	rc = store == NULL ? -1 : serve(s, id, ttl_ms, err);
	/* one who takes nothing, or is gone, is told nothing */
	if (rc < 0 && err->code != ERR_TIMEOUT && err->code != ERR_PROTOCOL) {
		frame_start(&no, FRAME_REFUSED);
		frame_add_int(&no, TAG_CODE, err->code);
		frame_add_text(&no, TAG_TEXT, err->text);
		(void)send_frame(s, &no, &lost);
	}
	buf_release(&s->data);
	free(s);
	return rc;
}
