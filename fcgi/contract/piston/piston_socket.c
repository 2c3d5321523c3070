/* SPDX-License-Identifier: MIT */
#include "contract/piston/piston_socket.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "contract/json.h"

#include "base/utf8.h"

#define BLOCK 64
#define ROUNDS 80
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define CONTROL_MAX 125
#define HEAD_MAX 14 /* of a frame, with its mask */

enum opcode {
	OP_CONTINUATION = 0,
	OP_TEXT = 1,
	OP_BINARY = 2,
	OP_CLOSE = 8,
	OP_PING = 9,
	OP_PONG = 10,
};

/* Why a connection is given up: RFC 6455, 7.4.1. */
enum { CLOSE_PROTOCOL = 1002, CLOSE_NO_TEXT = 1007, CLOSE_TOO_LONG = 1009 };

/* ---- SHA-1 ---- */

static uint32_t
sha1_rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
sha1_add_block(uint32_t h[5], const unsigned char *block)
{
	uint32_t w[ROUNDS];
	uint32_t s[5];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 |
		    (uint32_t)block[4 * i + 1] << 16 |
		    (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++)
		w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16],
		    1);
	memcpy(s, h, sizeof(s));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t f = i < 20 ?
		    ((s[1] & s[2]) | (~s[1] & s[3])) :
		    i >= 40 && i < 60 ?
		    ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) :
		    s[1] ^ s[2] ^ s[3];
		uint32_t k = i < 20 ? 0x5a827999 :
		    i < 40	    ? 0x6ed9eba1 :
		    i < 60	    ? 0x8f1bbcdc :
				      0xca62c1d6;
		uint32_t next = sha1_rotate(s[0], 5) + f + s[4] + k + w[i];

		s[4] = s[3];
		s[3] = s[2];
		s[2] = sha1_rotate(s[1], 30);
		s[1] = s[0];
		s[0] = next;
	}
	for (int i = 0; i < 5; i++)
		h[i] += s[i];
}

void
sha1(const void *data, size_t len, unsigned char hash[SHA1_LEN])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
		0xc3d2e1f0 };
	unsigned char last[2 * BLOCK] = { 0 };
	const unsigned char *in = data;
	size_t rest = len % BLOCK;
	size_t size = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	for (size_t at = 0; at + BLOCK <= len; at += BLOCK)
		sha1_add_block(h, in + at);
	memcpy(last, in + len - rest, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)((uint64_t)len * 8 >>
			8 * i &
		    0xff);
	for (size_t at = 0; at < size; at += BLOCK)
		sha1_add_block(h, last + at);
	for (size_t i = 0; i < SHA1_LEN; i++)
		hash[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- the request ---- */

size_t
socket_head_end(const char *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);

	return end == NULL ? 0 : (size_t)(end - data) + 4;
}

/* Copy what fits; false: it does not. */
static bool
socket_copy(char *out, size_t size, const char *text, size_t len)
{
	if (len >= size || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* One header, if it is one that counts.  False: its value is too long. */
static bool
socket_read_header(struct socket_head *head, const char *line, size_t len)
{
	const struct {
		const char *name;
		char *value;
		size_t size;
	} known[] = {
		{ "upgrade:", head->upgrade, sizeof(head->upgrade) },
		{ "sec-websocket-key:", head->key, sizeof(head->key) },
		{ "sec-websocket-version:", head->version,
		    sizeof(head->version) },
		{ "authorization:", head->authorization,
		    sizeof(head->authorization) },
		{ "inline-foreign:", head->foreign, sizeof(head->foreign) },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].name);

		if (len < n || strncasecmp(line, known[i].name, n) != 0)
			continue;
		while (n < len && (line[n] == ' ' || line[n] == '\t'))
			n++;
		return socket_copy(known[i].value, known[i].size, line + n,
		    len - n);
	}
	return true;
}

bool
socket_head_read(struct socket_head *head, const char *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n", 2);
	const char *blank;

	memset(head, 0, sizeof(*head));
	if (end == NULL || end - data < 4 || memcmp(data, "GET ", 4) != 0)
		return false;
	blank = memchr(data + 4, ' ', (size_t)(end - data) - 4);
	if (blank == NULL ||
	    !socket_copy(head->path, sizeof(head->path), data + 4,
		(size_t)(blank - data) - 4))
		return false;
	for (;;) {
		const char *line = end + 2;

		end = memmem(line, len - (size_t)(line - data), "\r\n", 2);
		if (end == NULL || end == line)
			return end != NULL;
		if (!socket_read_header(head, line, (size_t)(end - line)))
			return false;
	}
}

void
socket_answer(const char *key, char answer[SOCKET_ANSWER_LEN + 1])
{
	auto_buf struct buf text = BUF_INIT(1024);
	unsigned char hash[SHA1_LEN];

	buf_addf(&text, "%s" GUID, key);
	sha1(buf_str(&text), text.len, hash);
	buf_reset(&text);
	base64_add(&text, hash, sizeof(hash));
	memcpy(answer, buf_str(&text), SOCKET_ANSWER_LEN + 1);
}

/* ---- reading frames ---- */

void
socket_reader_init(struct socket_reader *r)
{
	*r = (struct socket_reader){ .in = BUF_INIT(HEAD_MAX +
					 SOCKET_MESSAGE_MAX + SOCKET_PIECE),
		.message = BUF_INIT(SOCKET_MESSAGE_MAX),
		.control = BUF_INIT(CONTROL_MAX) };
}

void
socket_reader_release(struct socket_reader *r)
{
	buf_release(&r->in);
	buf_release(&r->message);
	buf_release(&r->control);
}

void
socket_reader_add(struct socket_reader *r, const void *data, size_t len)
{
	/* A peer that is no WebSocket is not read any more. */
	if (r->code != 0)
		return;
	buf_drop(&r->in, r->taken);
	r->taken = 0;
	buf_add(&r->in, data, len);
}

struct head {
	bool fin;
	enum opcode opcode;
	size_t at; /* of the mask, in the reader's bytes */
	uint64_t len;
};

static enum socket_event
socket_fault(struct socket_reader *r, int code)
{
	r->code = code;
	return SOCKET_FAULT;
}

/* 0 when the head is whole, else what there is instead. */
static enum socket_event
socket_read_head(struct socket_reader *r, struct head *h)
{
	const unsigned char *in = (const unsigned char *)buf_str(&r->in) +
	    r->taken;
	size_t left = r->in.len - r->taken;
	size_t bytes;

	if (left < 2)
		return SOCKET_MORE;
	h->fin = (in[0] & 0x80) != 0;
	h->opcode = (enum opcode)(in[0] & 0x0f);
	h->len = in[1] & 0x7f;
	bytes = h->len == 127 ? 8 : h->len == 126 ? 2 : 0;
	/* no extension, and a client masks what it says */
	if ((in[0] & 0x70) != 0 || (in[1] & 0x80) == 0)
		return socket_fault(r, CLOSE_PROTOCOL);
	if (left < 2 + bytes)
		return SOCKET_MORE;
	if (bytes > 0)
		h->len = 0;
	for (size_t i = 0; i < bytes; i++)
		h->len = h->len << 8 | in[2 + i];
	h->at = r->taken + 2 + bytes;
	/* the shortest way to say it, and no other */
	if ((bytes == 2 && h->len < 126) ||
	    (bytes == 8 && (h->len <= UINT16_MAX || h->len > INT64_MAX)))
		return socket_fault(r, CLOSE_PROTOCOL);
	return SOCKET_MESSAGE;
}

/* May such a frame come now? */
static int
socket_check_frame(const struct socket_reader *r, const struct head *h)
{
	bool control = h->opcode >= OP_CLOSE;

	if (h->opcode > OP_PONG ||
	    (h->opcode > OP_BINARY && h->opcode < OP_CLOSE) ||
	    (control && (!h->fin || h->len > CONTROL_MAX)) ||
	    (!control && r->within != (h->opcode == OP_CONTINUATION)))
		return CLOSE_PROTOCOL;
	if (!control && h->len > SOCKET_MESSAGE_MAX - r->message.len)
		return CLOSE_TOO_LONG;
	return 0;
}

/* Append what a frame holds, without its mask. */
static void
socket_unmask(struct buf *out, const unsigned char *mask,
    const unsigned char *data, size_t len)
{
	char *room = buf_reserve(out, len);

	if (room == NULL)
		return;
	for (size_t i = 0; i < len; i++)
		room[i] = (char)(data[i] ^ mask[i % 4]);
	buf_commit(out, len);
}

/* A close frame holds nothing, or one of the codes that may be sent (RFC 6455,
 * 7.4) and text. */
static enum socket_event
socket_read_close(struct socket_reader *r)
{
	const char *data = buf_str(&r->control);
	size_t len = r->control.len;
	int code;

	if (len == 0)
		return SOCKET_CLOSE;
	if (len == 1)
		return socket_fault(r, CLOSE_PROTOCOL);
	code = (unsigned char)data[0] << 8 | (unsigned char)data[1];
	if (code < 1000 || (code > 1003 && code < 1007) ||
	    (code > 1014 && code < 3000) || code > 4999)
		return socket_fault(r, CLOSE_PROTOCOL);
	if (!utf8_valid(data + 2, len - 2))
		return socket_fault(r, CLOSE_NO_TEXT);
	return SOCKET_CLOSE;
}

/* The frame is whole: what does it mean?  MORE: nothing yet. */
static enum socket_event
socket_accept_frame(struct socket_reader *r, const struct head *h)
{
	switch (h->opcode) {
	case OP_CLOSE:
		return socket_read_close(r);
	case OP_PING:
		return SOCKET_PING;
	case OP_PONG:
		return SOCKET_MORE;
	case OP_TEXT:
	case OP_BINARY:
	case OP_CONTINUATION:
		break;
	}
	r->within = !h->fin;
	if (!h->fin)
		return SOCKET_MORE;
	if (r->is_text && !utf8_valid(buf_str(&r->message), r->message.len))
		return socket_fault(r, CLOSE_NO_TEXT);
	return SOCKET_MESSAGE;
}

enum socket_event
socket_next(struct socket_reader *r)
{
	struct head h;
	enum socket_event event;
	const unsigned char *in;
	struct buf *to;
	int code;

	if (r->code != 0)
		return SOCKET_FAULT;
	do {
		event = socket_read_head(r, &h);
		if (event != SOCKET_MESSAGE)
			return event;
		/* the last message was taken when another one begins */
		if (!r->within && h.opcode < OP_CLOSE)
			buf_reset(&r->message);
		code = socket_check_frame(r, &h);
		if (code != 0)
			return socket_fault(r, code);
		if (r->in.len - h.at < 4 + h.len)
			return SOCKET_MORE;
		if (h.opcode == OP_TEXT || h.opcode == OP_BINARY)
			r->is_text = h.opcode == OP_TEXT;
		to = h.opcode >= OP_CLOSE ? &r->control : &r->message;
		if (to == &r->control)
			buf_reset(to);
		in = (const unsigned char *)buf_str(&r->in) + h.at;
		socket_unmask(to, in, in + 4, (size_t)h.len);
		r->taken = h.at + 4 + (size_t)h.len;
		event = socket_accept_frame(r, &h);
	} while (event == SOCKET_MORE);
	return event;
}

/* ---- writing frames ---- */

static void
socket_add_frame(struct buf *out, enum opcode opcode, const char *data,
    size_t len)
{
	buf_addc(out, (char)(0x80 | opcode));
	if (len < 126) {
		buf_addc(out, (char)len);
	} else if (len <= UINT16_MAX) {
		buf_addc(out, 126);
		buf_addc(out, (char)(len >> 8));
		buf_addc(out, (char)(len & 0xff));
	} else {
		buf_addc(out, 127);
		for (int shift = 56; shift >= 0; shift -= 8)
			buf_addc(out, (char)((uint64_t)len >> shift & 0xff));
	}
	buf_add(out, data, len);
}

void
socket_add_text(struct buf *out, const char *text, size_t len)
{
	socket_add_frame(out, OP_TEXT, text, len);
}

void
socket_add_pong(struct buf *out, const char *data, size_t len)
{
	socket_add_frame(out, OP_PONG, data, len);
}

void
socket_add_close(struct buf *out, int code, const char *reason)
{
	char data[CONTROL_MAX + 1] = { (char)(code >> 8), (char)(code & 0xff) };

	(void)snprintf(data + 2, sizeof(data) - 2, "%s", reason);
	socket_add_frame(out, OP_CLOSE, data, 2 + strlen(data + 2));
}
