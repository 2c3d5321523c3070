/* SPDX-License-Identifier: MIT */
/* Another node's answer about a file: a head is read whole or not at all. */
#include "protocol/node_ask.h"

#include "base/basics.h"
#include "tap.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"

static void
reads(const char *text, ssize_t want, const char *name)
{
	struct node_answer answer;

	is_int(node_answer_read(&answer, text, strlen(text)), want, name);
}

static void
test_whole(void)
{
	static const char text[] = HEAD
	    "inline-note:  aZ_-9\r\nInline-Name: a%20b%c3%A9\r\n"
	    "X: y\r\n\r\nhello";
	struct node_answer answer;
	size_t whole = sizeof(text) - 1;

	is_int(node_answer_read(&answer, text, whole), (int)whole - 5,
	    "a head");
	is_int(answer.status, 200, "status");
	is_int(answer.length, 5, "length");
	is_str(answer.note, "aZ_-9", "note");
	is_str(answer.name, "a b\xc3\xa9", "name");
	for (size_t len = 0; len < whole - 5; len++)
		if (node_answer_read(&answer, text, len) != 0)
			ok(false, "any part of it is not whole");
	reads("HTTP/1.0 504 \r\n\r\n", 17, "one line");
	reads("HTTP/1.1 404\r\n\r\n", 16, "without a reason");
}

static void
test_wrong(void)
{
	char text[NODE_HEAD_MAX + 1];
	struct node_answer answer;

	reads("HTTP/2 200 OK\r\n\r\n", -1, "another version");
	reads("HTTP/1.1 2000\r\n\r\n", -1, "no status");
	reads("HTTP/1.1 099 OK\r\n\r\n", -1, "nor that");
	reads("HTTP/1.1\r\n\r\n", -1, "nor nothing");
	reads("\r\n\r\n", -1, "nor less");
	reads(HEAD "Content-Length: 5\r\n\r\n", -1, "a length twice");
	reads(HEAD "Transfer-Encoding: chunked\r\n\r\n", -1, "chunks");
	reads("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -1,
	    "less than nothing");
	reads("HTTP/1.1 200 OK\r\nContent-Length: 104857601\r\n\r\n", -1,
	    "more than a file may have");
	reads(HEAD "no header\r\n\r\n", -1, "no header");
	reads(HEAD ": x\r\n\r\n", -1, "one without a name");
	reads(HEAD "Inline-Note: a b\r\n\r\n", -1, "a note of other letters");
	reads(HEAD "Inline-Name: %zz\r\n\r\n", -1, "a name that is none");
	reads(HEAD "Inline-Name: %ff\r\n\r\n", -1, "one of no text");
	reads(HEAD "Inline-Name: a%00b\r\n\r\n", -1, "one that ends early");
	memset(text, 'x', sizeof(text));
	is_int(node_answer_read(&answer, text, sizeof(text)), -1,
	    "one without an end");
}

/* The longest that the store takes, and what is written is read. */
static void
test_names(void)
{
	auto_buf struct buf text = BUF_INIT(65536);
	char name[16384] = "";
	struct node_answer answer;
	ssize_t len;

	for (size_t i = 0; i + 2 < sizeof(name) - 4; i += 2)
		memcpy(name + i, "\xc3\xa9", 3);
	memcpy(name + strlen(name), ".md", 4);
	buf_adds(&text, HEAD);
	node_answer_add(&text, name, "n");
	buf_adds(&text, "\r\n");
	len = node_answer_read(&answer, buf_str(&text), text.len);
	ok(len == (ssize_t)text.len && len > 0, "a long name is read");
	is_str(answer.name, name + strlen(name) - strlen(answer.name),
	    "its end");
	ok(strlen(answer.name) > NODE_NAME_MAX - 4, "most of it");
	is_str(answer.note, "n", "and the note");
}

int
main(void)
{
	test_whole();
	test_wrong();
	test_names();
	return tap_done();
}
