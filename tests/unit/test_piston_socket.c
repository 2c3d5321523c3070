/* SPDX-License-Identifier: MIT */
/* Piston's WebSocket: SHA-1, the handshake, each length of a frame. */
#include "contract/piston/piston_socket.h"

#include "base/basics.h"

#include "tap.h"

/* ---- the handshake ---- */

/* FIPS 180-4's examples, and lengths around the end of a block. */
static const struct {
	size_t len; /* times the text */
	const char *text;
	const char *hash;
} hashes[] = {
	{ 1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
	{ 1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
	{ 1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	    "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
	{ 1,
	    "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
	    "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	    "a49b2446a02c645bf419f995b67091253a04a259" },
	{ 1000000, "a", "34aa973cd4c4daa4f61eeb2bdbad27316534016f" },
	{ 55, "a", "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
	{ 56, "a", "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
	{ 63, "a", "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
	{ 64, "a", "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
};

static void
test_hash(size_t i)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	unsigned char hash[SHA1_LEN];
	char hex[2 * SHA1_LEN + 1];

	for (size_t n = 0; n < hashes[i].len; n++)
		buf_adds(&text, hashes[i].text);
	sha1(buf_str(&text), text.len, hash);
	for (size_t n = 0; n < SHA1_LEN; n++)
		(void)snprintf(hex + 2 * n, 3, "%02x", hash[n]);
	is_str(hex, hashes[i].hash, "a hash");
}

static void
test_head(void)
{
	static const char text[] = "GET /api/v2/connect HTTP/1.1\r\n"
				   "UPGRADE:websocket\r\nOther: x\r\n"
				   "Sec-WebSocket-Key: \t abc\r\n\r\nrest";
	char answer[SOCKET_ANSWER_LEN + 1];
	struct socket_head head;
	char long_head[600];
	ssize_t end = socket_head_read(&head, text, sizeof(text) - 1);

	is_int(end, sizeof(text) - 1 - 4, "a head ends with its empty line");
	is_str(head.path, "/api/v2/connect", "its path");
	is_str(head.upgrade, "websocket", "a header in any letters");
	is_str(head.key, "abc", "without the blanks before it");
	is_str(head.authorization, "", "one that is not there");
	(void)snprintf(long_head, sizeof(long_head),
	    "GET / HTTP/1.1\r\nUpgrade: %032d\r\n\r\n", 0);
	is_int(socket_head_read(&head, long_head, strlen(long_head)), -1,
	    "one that is too long");
	is_int(socket_head_read(&head, "POST / HTTP/1.1\r\n\r\n", 19), -1,
	    "only GET opens one");
	is_int(socket_head_read(&head, text, (size_t)end - 1), 0,
	    "no head ends before");
	socket_answer("dGhlIHNhbXBsZSBub25jZQ==", answer);
	is_str(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "RFC 6455's example");
}

/* ---- frames ---- */

/* A client's, with a mask; more: bytes of its length, 0, 2 or 8. */
static void
add_frame(struct buf *out, int first, size_t len, int more)
{
	static const unsigned char mask[4] = { 1, 0x80, 0xfe, 0x55 };

	buf_addc(out, (char)first);
	buf_addc(out,
	    (char)(0x80 |
		(more == 0	  ? (int)len :
			more == 2 ? 126 :
				    127)));
	for (int i = more - 1; i >= 0; i--)
		buf_addc(out, (char)((uint64_t)len >> 8 * i));
	buf_add(out, mask, 4);
	for (size_t i = 0; i < len; i++)
		buf_addc(out, (char)('x' ^ mask[i % 4]));
}

/* One frame, byte for byte where it is short: what it is. */
static const struct {
	int first;
	size_t len;
	int more;
	enum socket_event event;
	int code;
	const char *what;
} frames[] = {
	{ 0x81, 0, 0, SOCKET_MESSAGE, 0, "an empty text" },
	{ 0x81, 125, 0, SOCKET_MESSAGE, 0, "the longest short one" },
	{ 0x82, 126, 2, SOCKET_MESSAGE, 0, "the shortest of 16 bits" },
	{ 0x82, 65535, 2, SOCKET_MESSAGE, 0, "the longest" },
	{ 0x82, 65536, 8, SOCKET_MESSAGE, 0, "the shortest of 64 bits" },
	{ 0x82, SOCKET_MESSAGE_MAX, 8, SOCKET_MESSAGE, 0, "the longest" },
	{ 0x82, SOCKET_MESSAGE_MAX + 1, 8, SOCKET_FAULT, 1009, "too long" },
	{ 0x82, 125, 2, SOCKET_FAULT, 1002, "more bits than it needs" },
	{ 0x82, 65535, 8, SOCKET_FAULT, 1002, "likewise" },
	{ 0x89, 125, 0, SOCKET_PING, 0, "the longest ping" },
	{ 0x89, 126, 2, SOCKET_FAULT, 1002, "a longer one" },
	{ 0x09, 0, 0, SOCKET_FAULT, 1002, "a ping in pieces" },
	{ 0x8a, 5, 0, SOCKET_MORE, 0, "a pong" },
	{ 0x88, 0, 0, SOCKET_CLOSE, 0, "a goodbye" },
	{ 0x08, 0, 0, SOCKET_FAULT, 1002, "one in pieces" },
	{ 0x88, 126, 2, SOCKET_FAULT, 1002, "one that is too long" },
	{ 0x80, 1, 0, SOCKET_FAULT, 1002, "the rest of nothing" },
	{ 0x01, 1, 0, SOCKET_MORE, 0, "a beginning" },
	{ 0xc1, 1, 0, SOCKET_FAULT, 1002, "a reserved bit" },
	{ 0x83, 1, 0, SOCKET_FAULT, 1002, "no such opcode" },
	{ 0x8b, 1, 0, SOCKET_FAULT, 1002, "nor that" },
};

/* As they come: in pieces, each event before the next one.  The last one. */
static enum socket_event
feed(struct socket_reader *r, const struct buf *bytes, size_t piece)
{
	enum socket_event event = SOCKET_MORE;

	for (size_t at = 0; at < bytes->len && event == SOCKET_MORE;
	     at += piece) {
		size_t left = bytes->len - at;

		socket_reader_add(r, bytes->data + at,
		    left < piece ? left : piece);
		event = socket_next(r);
	}
	return event;
}

static void
test_frame(size_t i)
{
	auto_buf struct buf bytes = BUF_INIT(2 * SOCKET_MESSAGE_MAX);
	struct socket_reader r;

	socket_reader_init(&r);
	add_frame(&bytes, frames[i].first, frames[i].len, frames[i].more);
	is_int(feed(&r, &bytes, frames[i].len < 1000 ? 1 : SOCKET_PIECE),
	    frames[i].event, frames[i].what);
	is_int(r.code, frames[i].code, "its code");
	if (frames[i].event == SOCKET_MESSAGE)
		ok(r.message.len == frames[i].len &&
			strspn(buf_str(&r.message), "x") == r.message.len,
		    "all of it, without its mask");
	socket_reader_release(&r);
}

/* Valid and invalid close frames: RFC 6455, 5.5.1 and 7.4. */
static const struct {
	int code;
	size_t len;
	const char *text;
	int answer; /* 0: it is one */
} goodbyes[] = {
	{ 0, 1, "", 1002 },
	{ 0, 2, "", 1002 },
	{ 999, 2, "", 1002 },
	{ 1000, 2, "", 0 },
	{ 1003, 2, "", 0 },
	{ 1004, 2, "", 1002 },
	{ 1005, 2, "", 1002 },
	{ 1006, 2, "", 1002 },
	{ 1007, 2, "", 0 },
	{ 1014, 2, "", 0 },
	{ 1015, 2, "", 1002 },
	{ 2999, 2, "", 1002 },
	{ 3000, 2, "", 0 },
	{ 4999, 2, "", 0 },
	{ 5000, 2, "", 1002 },
	{ 65535, 2, "", 1002 },
	{ 1000, 4, "\xc3\xa9", 0 },
	{ 1000, 3, "\xc3", 1007 },
	{ 1000, 5, "\xed\xa0\x80", 1007 },
	{ 999, 3, "\xff", 1002 },
};

static void
test_goodbye(size_t i)
{
	char frame[32] = { (char)0x88, (char)(0x80 | goodbyes[i].len), 0, 0, 0,
		0, (char)(goodbyes[i].code >> 8), (char)goodbyes[i].code };
	struct socket_reader r;

	(void)snprintf(frame + 8, sizeof(frame) - 8, "%s", goodbyes[i].text);
	socket_reader_init(&r);
	socket_reader_add(&r, frame, 6 + goodbyes[i].len);
	is_int(socket_next(&r),
	    goodbyes[i].answer == 0 ? SOCKET_CLOSE : SOCKET_FAULT, "a goodbye");
	is_int(r.code, goodbyes[i].answer, "and what is wrong with it");
	socket_reader_release(&r);
}

/* As much as may be kept at one time: a frame but for its last byte, and a
 * piece, in which thousands of frames end. */
static void
test_most(void)
{
	auto_buf struct buf bytes = BUF_INIT(2 * SOCKET_MESSAGE_MAX);
	struct socket_reader r;
	size_t first;
	int pings = 0;

	socket_reader_init(&r);
	add_frame(&bytes, 0x82, SOCKET_MESSAGE_MAX, 8);
	first = bytes.len - 1;
	while (bytes.len + 6 <= first + SOCKET_PIECE)
		add_frame(&bytes, 0x89, 0, 0);
	for (size_t at = 0; at < first; at += SOCKET_PIECE)
		socket_reader_add(&r, bytes.data + at,
		    first - at < SOCKET_PIECE ? first - at : SOCKET_PIECE);
	is_int(socket_next(&r), SOCKET_MORE, "a byte is missing");
	socket_reader_add(&r, bytes.data + first, bytes.len - first);
	is_int(socket_next(&r), SOCKET_MESSAGE, "now it is whole");
	while (socket_next(&r) == SOCKET_PING)
		pings++;
	is_int(pings, (int64_t)(SOCKET_PIECE - 1) / 6, "and all that follow");
	is_int(r.code, 0, "without a fault");
	socket_reader_release(&r);
}

static void
test_pieces(void)
{
	auto_buf struct buf bytes = BUF_INIT(2 * SOCKET_MESSAGE_MAX);
	struct socket_reader r;

	socket_reader_init(&r);
	add_frame(&bytes, 0x01, SOCKET_MESSAGE_MAX - 1, 8);
	add_frame(&bytes, 0x00, 1, 0);
	is_int(feed(&r, &bytes, SOCKET_PIECE), SOCKET_MORE,
	    "as long as may be");
	buf_reset(&bytes);
	add_frame(&bytes, 0x80, 1, 0);
	is_int(feed(&r, &bytes, SOCKET_PIECE), SOCKET_FAULT, "and a byte");
	is_int(r.code, 1009, "are too long");
	socket_reader_release(&r);
}

static void
test_writing(void)
{
	static const struct {
		size_t len;
		size_t head;
		const char *bytes;
	} rows[] = {
		{ 125, 2, "\x81\x7d" },
		{ 126, 4, "\x81\x7e\x00\x7e" },
		{ 65535, 4, "\x81\x7e\xff\xff" },
		{ 65536, 10, "\x81\x7f\0\0\0\0\0\1\0\0" },
	};
	auto_buf struct buf text = BUF_INIT(65536);
	auto_buf struct buf out = BUF_INIT(1 << 20);
	char reason[200];

	(void)memset(buf_reserve(&text, 65536), 'x', 65536);
	buf_commit(&text, 65536);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_reset(&out);
		socket_add(&out, SOCKET_TEXT, buf_str(&text), rows[i].len);
		is_int(out.len, rows[i].head + rows[i].len, "a frame");
		ok(memcmp(out.data, rows[i].bytes, rows[i].head) == 0,
		    "says how long it is");
	}
	(void)memset(reason, 'r', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	buf_reset(&out);
	socket_add_close(&out, 4999, reason);
	is_int(out.len, 2 + 125, "a long reason is cut");
	ok(memcmp(out.data, "\x88\x7d\x13\x87r", 5) == 0, "behind its code");
}

int
main(void)
{
	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		test_hash(i);
	test_head();
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		test_frame(i);
	for (size_t i = 0; i < sizeof(goodbyes) / sizeof(goodbyes[0]); i++)
		test_goodbye(i);
	test_most();
	test_pieces();
	test_writing();
	return tap_done();
}
