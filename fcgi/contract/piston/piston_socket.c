/* SPDX-License-Identifier: MIT */
#include "contract/piston/piston_socket.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "contract/json.h"

#include "base/basics.h"
#include "base/utf8.h"

#define BLOCK 64
#define ROUNDS 80
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define CONTROL_MAX 125
#define HEAD_MAX 14 /* of a frame, with its mask */

/* Why a connection is given up: RFC 6455, 7.4.1. */
enum { CLOSE_PROTOCOL = 1002, CLOSE_NO_TEXT = 1007, CLOSE_TOO_LONG = 1009 };

/* ---- SHA-1 ---- */

static uint32_t
sha1_rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
sha1_add_block(uint32_t h[5], const char *block)
{
	static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc,
		0xca62c1d6 };
	uint32_t w[ROUNDS];
	uint32_t s[5];

	memcpy(w, block, BLOCK);
	memcpy(s, h, sizeof(s));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t f = i < 20   ? (s[1] & s[2]) | (~s[1] & s[3]) :
		    i >= 40 && i < 60 ? (s[1] & s[2]) | (s[3] & (s[1] | s[2])) :
					s[1] ^ s[2] ^ s[3];

		w[i] = i < 16 ?
		    be32toh(w[i]) :
		    sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
		f += sha1_rotate(s[0], 5) + s[4] + k[i / 20] + w[i];
		memmove(s + 1, s, 4 * sizeof(s[0]));
		s[2] = sha1_rotate(s[2], 30);
		s[0] = f;
	}
	for (int i = 0; i < 5; i++)
		h[i] += s[i];
}

void
sha1(const void *data, size_t len, unsigned char hash[SHA1_LEN])
{
	auto_buf struct buf text = BUF_INIT(len + (size_t)2 * BLOCK);
	const uint64_t bits = htobe64((uint64_t)len * 8);
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
		0xc3d2e1f0 };

	buf_add(&text, data, len);
	buf_addc(&text, (char)0x80);
	while (text.len % BLOCK != BLOCK - sizeof(bits))
		buf_addc(&text, '\0');
	buf_add(&text, &bits, sizeof(bits));
	for (size_t at = 0; at < text.len; at += BLOCK)
		sha1_add_block(h, text.data + at);
	for (size_t i = 0; i < 5; i++)
		h[i] = htobe32(h[i]);
	memcpy(hash, h, SHA1_LEN);
}

/* ---- the request ---- */

/* One line, if it is a header that counts.  False: its value is too long. */
static bool
socket_read_header(struct socket_head *head, const char *line)
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

		if (strncasecmp(line, known[i].name, n) != 0)
			continue;
		n += strspn(line + n, " \t");
		return snprintf(known[i].value, known[i].size, "%s", line + n) <
		    (int)known[i].size;
	}
	return true;
}

ssize_t
socket_head_read(struct socket_head *head, const char *data, size_t len)
{
	const char *empty = memmem(data, len, "\r\n\r\n", 4);
	size_t size = empty == NULL ? len : (size_t)(empty - data) + 4;
	auto_free char *copy = NULL;
	char *rest;
	char *line;
	int end = 0;

	if (size > SOCKET_HEAD_MAX)
		return -1;
	if (empty == NULL)
		return 0;
	rest = copy = xstrndup(data, size);
	*head = (struct socket_head){ .path = "" };
	if (strlen(copy) != size ||
	    sscanf(copy, "GET %255s HTTP/1.%n", head->path, &end) != 1 ||
	    end == 0)
		return -1;
	while ((line = strsep(&rest, "\n")) != NULL) {
		line[strcspn(line, "\r")] = '\0';
		if (!socket_read_header(head, line))
			return -1;
	}
	return (ssize_t)size;
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
		.message = BUF_INIT(SOCKET_MESSAGE_MAX) };
}

void
socket_reader_release(struct socket_reader *r)
{
	buf_release(&r->in);
	buf_release(&r->message);
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

static enum socket_event
socket_fault(struct socket_reader *r, int code)
{
	r->code = code;
	return SOCKET_FAULT;
}

struct head {
	bool fin;
	bool control;
	enum socket_opcode opcode;
	size_t at; /* of the mask, in the bytes that are not taken */
	uint64_t len;
};

/* Read a frame's head.  MESSAGE: it is whole. */
static enum socket_event
socket_read_head(struct socket_reader *r, struct head *h,
    const unsigned char *in, size_t left)
{
	size_t bytes;

	if (left < 2)
		return SOCKET_MORE;
	h->fin = (in[0] & 0x80) != 0;
	h->opcode = (enum socket_opcode)(in[0] & 0x0f);
	h->control = h->opcode >= SOCKET_OP_CLOSE;
	h->len = in[1] & 0x7f;
	bytes = h->len == 127 ? 8 : h->len == 126 ? 2 : 0;
	h->at = 2 + bytes;
	/* no extension, and a client masks what it says */
	if ((in[0] & 0x70) != 0 || (in[1] & 0x80) == 0)
		return socket_fault(r, CLOSE_PROTOCOL);
	if (left < h->at)
		return SOCKET_MORE;
	if (bytes > 0)
		h->len = 0;
	for (size_t i = 2; i < h->at; i++)
		h->len = h->len << 8 | in[i];
	/* the shortest way to say it, and no other */
	if ((bytes == 2 && h->len < 126) ||
	    (bytes == 8 && (h->len <= UINT16_MAX || h->len > INT64_MAX)))
		return socket_fault(r, CLOSE_PROTOCOL);
	return SOCKET_MESSAGE;
}

/* May such a frame come now?  0, or why not. */
static int
socket_check_frame(const struct socket_reader *r, const struct head *h)
{
	if (h->opcode > SOCKET_PONG ||
	    (h->opcode > SOCKET_BINARY && !h->control) ||
	    (h->control && (!h->fin || h->len > CONTROL_MAX)) ||
	    (!h->control && r->within != (h->opcode == SOCKET_CONTINUATION)))
		return CLOSE_PROTOCOL;
	return !h->control && h->len > SOCKET_MESSAGE_MAX - r->message.len ?
	    CLOSE_TOO_LONG :
	    0;
}

/* A close frame holds nothing, or one of the codes that may be sent (RFC 6455,
 * 7.4) and text. */
static enum socket_event
socket_read_close(struct socket_reader *r)
{
	const unsigned char *data = (const unsigned char *)r->control;
	int code;

	if (r->control_len == 0)
		return SOCKET_CLOSE;
	code = r->control_len == 1 ? 0 : data[0] << 8 | data[1];
	if (code < 1000 || (code > 1003 && code < 1007) ||
	    (code > 1014 && code < 3000) || code > 4999)
		return socket_fault(r, CLOSE_PROTOCOL);
	return utf8_valid(r->control + 2, r->control_len - 2) ?
	    SOCKET_CLOSE :
	    socket_fault(r, CLOSE_NO_TEXT);
}

/* A frame is whole, and data without its mask.  MORE: it means nothing yet. */
static enum socket_event
socket_accept_frame(struct socket_reader *r, const struct head *h,
    const char *data)
{
	if (h->control) {
		r->control = data;
		r->control_len = (size_t)h->len;
		return h->opcode == SOCKET_OP_CLOSE ? socket_read_close(r) :
		    h->opcode == SOCKET_OP_PING	    ? SOCKET_PING :
						      SOCKET_MORE;
	}
	if (h->opcode != SOCKET_CONTINUATION)
		r->is_text = h->opcode == SOCKET_TEXT;
	buf_add(&r->message, data, (size_t)h->len);
	r->within = !h->fin;
	if (!h->fin)
		return SOCKET_MORE;
	return r->is_text && !utf8_valid(buf_str(&r->message), r->message.len) ?
	    socket_fault(r, CLOSE_NO_TEXT) :
	    SOCKET_MESSAGE;
}

enum socket_event
socket_next(struct socket_reader *r)
{
	enum socket_event event = SOCKET_MORE;
	struct head h;
	int code;

	if (r->code != 0)
		return SOCKET_FAULT;
	while (event == SOCKET_MORE) {
		char *in = r->in.len > 0 ? r->in.data + r->taken : NULL;
		size_t left = r->in.len - r->taken;
		char *data;

		event = socket_read_head(r, &h, (unsigned char *)in, left);
		if (event != SOCKET_MESSAGE)
			return event;
		/* the last message was taken when another one begins */
		if (!r->within && !h.control)
			buf_reset(&r->message);
		code = socket_check_frame(r, &h);
		if (code != 0)
			return socket_fault(r, code);
		if (left - h.at < 4 + h.len)
			return SOCKET_MORE;
		data = in + h.at + 4;
		for (size_t i = 0; i < h.len; i++)
			data[i] = (char)(data[i] ^ in[h.at + i % 4]);
		r->taken += h.at + 4 + (size_t)h.len;
		event = socket_accept_frame(r, &h, data);
	}
	return event;
}

/* ---- writing frames ---- */

void
socket_add(struct buf *out, enum socket_opcode opcode, const char *data,
    size_t len)
{
	const uint16_t len_16 = htobe16((uint16_t)len);
	const uint64_t len_64 = htobe64(len);

	buf_addc(out, (char)(0x80 | opcode));
	buf_addc(out,
	    (char)(len <= CONTROL_MAX ? len :
		    len <= UINT16_MAX ? 126 :
					127));
	if (len > UINT16_MAX)
		buf_add(out, &len_64, sizeof(len_64));
	else if (len > CONTROL_MAX)
		buf_add(out, &len_16, sizeof(len_16));
	buf_add(out, data, len);
}

void
socket_add_close(struct buf *out, int code, const char *reason)
{
	char data[CONTROL_MAX + 1] = { (char)(code >> 8), (char)(code & 0xff) };

	(void)snprintf(data + 2, sizeof(data) - 2, "%s", reason);
	socket_add(out, SOCKET_OP_CLOSE, data, 2 + strlen(data + 2));
}
