/* SPDX-License-Identifier: MIT */
/* The copy of a file: its head, a list of what there is, and who asks for one:
 * copy_head.c, s3_answer.c, ../protocol/snapshot.c. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sandbox/base/buf.h"
#include "sandbox/base/config.h"
#include "sandbox/base/err.h"
#include "sandbox/base/fd.h"
#include "sandbox/base/text.h"
#include "sandbox/protocol/frame.h"
#include "sandbox/protocol/snapshot.h"
#include "tap.h"

#define ID "01234567-89ab-4cde-8f01-23456789abcd"
#define WAIT_MS 10000

static void
test_ids(void)
{
	static const char *const bad[] = { "", "0", (ID "0"), ("../" ID),
		"01234567-89ab-4cde-8f01-23456789abcD",
		"01234567-89ab-3cde-8f01-23456789abcd",
		"01234567-89ab-4cde-7f01-23456789abcd",
		"01234567x89ab-4cde-8f01-23456789abcd",
		"../../..-89ab-4cde-8f01-23456789abcd" };

	ok(text_is_uuid(ID, strlen(ID)), "an id");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!text_is_uuid(bad[i], strlen(bad[i])), bad[i]);
	ok(!text_is_uuid("01234567-89ab-4cde-8f01-23456789abc", 36),
	    "one that ends sooner");
}

/* ---- who asks ---- */

static char folder[200];
static int listening;

enum answer {
	ANSWER_NONE,
	ANSWER_ALL,
	ANSWER_EMPTY,
	ANSWER_DAMAGED,
	ANSWER_HALF,
	ANSWER_MORE,
	ANSWER_NEGATIVE,
	ANSWER_HUGE,
	ANSWER_LONG_NOTE,
	ANSWER_NO_NOTE,
	ANSWER_NO_BYTES,
	ANSWER_ANOTHER,
	ANSWER_JUNK,
	ANSWER_BAD_CODE,
	ANSWER_SILENCE,
};

static void
say(int fd, struct frame *frame)
{
	struct err err;

	(void)fd_send_packet(fd, frame->data, frame->len, -1, WAIT_MS, &err);
}

static void
say_bytes(int fd, enum frame_kind kind, size_t len)
{
	static char data[FRAME_CHUNK];
	struct frame frame;

	memset(data, 'x', sizeof(data));
	frame_start(&frame, kind);
	frame_add_bytes(&frame, TAG_DATA, data, len);
	say(fd, &frame);
}

static void
say_head(int fd, enum answer answer)
{
	static char note[SNAPSHOT_NOTE_MAX + 1];
	struct frame frame;
	int64_t size = answer == ANSWER_EMPTY ? 0 :
	    answer == ANSWER_NEGATIVE	      ? -1 :
	    answer == ANSWER_HUGE	      ? SNAPSHOT_FILE_MAX + 1 :
						5 + FRAME_CHUNK;

	frame_start(&frame, FRAME_GRANTED);
	if (answer != ANSWER_NONE)
		frame_add_int(&frame, TAG_SIZE, size);
	if (answer == ANSWER_LONG_NOTE)
		frame_add_bytes(&frame, TAG_DATA, note, sizeof(note));
	else if (answer != ANSWER_NO_NOTE)
		frame_add_bytes(&frame, TAG_DATA, "a\0note", 6);
	say(fd, &frame);
}

static void
say_refused(int fd, int64_t code)
{
	struct frame frame;

	frame_start(&frame, FRAME_REFUSED);
	frame_add_int(&frame, TAG_CODE, code);
	frame_add_text(&frame, TAG_TEXT, "no");
	say(fd, &frame);
}

/* One answer, until the one who asked hangs up. */
static void
serve(enum answer answer)
{
	unsigned char packet[1024];
	struct frame_view view;
	struct err err;
	const unsigned char *id;
	size_t len;
	int fd = accept(listening, NULL, NULL);
	ssize_t got = fd_receive_packet(fd, packet, sizeof(packet), NULL,
	    WAIT_MS, &err);

	if (got <= 0 || !frame_parse(&view, packet, (size_t)got) ||
	    view.kind != FRAME_COPY ||
	    !frame_get_bytes(&view, TAG_NAME, &id, &len) ||
	    !text_is_uuid((const char *)id, len))
		_exit(1);
	if (answer == ANSWER_BAD_CODE)
		say_refused(fd, 4711);
	else if (answer == ANSWER_JUNK)
		(void)fd_send_packet(fd, "\377junk", 5, -1, WAIT_MS, &err);
	else if (answer != ANSWER_SILENCE)
		say_head(fd, answer);
	if (answer == ANSWER_NO_BYTES)
		say_bytes(fd, FRAME_BYTES, 0);
	if (answer == ANSWER_ANOTHER)
		say_bytes(fd, FRAME_OUTPUT, 5);
	if (answer == ANSWER_ALL || answer == ANSWER_HALF ||
	    answer == ANSWER_MORE || answer == ANSWER_DAMAGED)
		say_bytes(fd, FRAME_BYTES, FRAME_CHUNK);
	if (answer == ANSWER_ALL)
		say_bytes(fd, FRAME_BYTES, 5);
	if (answer == ANSWER_MORE)
		say_bytes(fd, FRAME_BYTES, 6);
	if (answer == ANSWER_DAMAGED)
		say_refused(fd, ERR_INPUT);
	if (answer == ANSWER_SILENCE)
		(void)fd_receive_packet(fd, packet, sizeof(packet), NULL,
		    WAIT_MS, &err);
	_exit(0);
}

/* What comes of one: a code, 0: all, 1: none; how many bytes had come. */
static int
ask(enum answer answer, const struct pollfd *unless, int wait_ms, int64_t *got)
{
	struct config config = { .state_dir = folder };
	struct snapshot_copy copy;
	const unsigned char *data;
	struct err err = { 0 };
	pid_t pid = fork();
	ssize_t n = 0;
	int rc;

	if (pid == 0)
		serve(answer);
	*got = 0;
	rc = snapshot_copy_open(&copy, &config, ID, unless, wait_ms, &err);
	while (rc == 0 &&
	    (n = snapshot_copy_next(&copy, unless, wait_ms, &data, &err)) > 0)
		*got += data[n - 1] == 'x' ? n : 0;
	if (rc == 0 && n == 0)
		ok(copy.note_len == 6 && memcmp(copy.note, "a\0note", 7) == 0 &&
			*got == copy.size && copy.left == 0,
		    "it is as it was told");
	snapshot_copy_release(&copy);
	(void)waitpid(pid, NULL, 0);
	return rc < 0 || n < 0 ? (int)err.code : rc;
}

static void
test_client(void)
{
	static const struct {
		enum answer answer;
		int want;
		int64_t got;
		const char *name;
	} cases[] = {
		{ ANSWER_NONE, 1, 0, "there is none" },
		{ ANSWER_ALL, 0, 5 + FRAME_CHUNK, "all of it" },
		{ ANSWER_EMPTY, 0, 0, "nothing" },
		{ ANSWER_DAMAGED, ERR_INPUT, FRAME_CHUNK, "a damaged one" },
		{ ANSWER_HALF, ERR_UNAVAILABLE, FRAME_CHUNK, "half" },
		{ ANSWER_MORE, ERR_PROTOCOL, FRAME_CHUNK, "too much" },
		{ ANSWER_NEGATIVE, ERR_PROTOCOL, 0, "less than nothing" },
		{ ANSWER_HUGE, ERR_PROTOCOL, 0, "more than a file can be" },
		{ ANSWER_LONG_NOTE, ERR_PROTOCOL, 0, "a note too long" },
		{ ANSWER_NO_NOTE, ERR_PROTOCOL, 0, "no note" },
		{ ANSWER_NO_BYTES, ERR_PROTOCOL, 0, "bytes that are none" },
		{ ANSWER_ANOTHER, ERR_PROTOCOL, 0, "another frame" },
		{ ANSWER_JUNK, ERR_PROTOCOL, 0, "no frame" },
		{ ANSWER_BAD_CODE, ERR_PROTOCOL, 0, "a code of nobody's" },
	};
	struct pollfd unless = { .events = POLLIN };
	int pipes[2] = { -1, -1 };
	int64_t got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		is_int(ask(cases[i].answer, NULL, WAIT_MS, &got), cases[i].want,
		    cases[i].name);
		is_int(got, cases[i].got, cases[i].name);
	}
	is_int(ask(ANSWER_SILENCE, NULL, 50, &got), ERR_TIMEOUT, "not in time");
	(void)!pipe(pipes);
	unless.fd = pipes[0];
	(void)!write(pipes[1], "x", 1);
	is_int(ask(ANSWER_SILENCE, &unless, WAIT_MS, &got), ERR_TIMEOUT,
	    "nobody waits any more");
}

static void
test_nobody(void)
{
	static char nowhere[] = "/nonexistent";
	struct config config = { .state_dir = folder };
	struct snapshot_copy copy;
	struct err err;

	is_int(snapshot_copy_open(&copy, &config, "../x", NULL, WAIT_MS, &err),
	    1, "what is no id is not there, and nobody is asked");
	snapshot_copy_release(&copy);
	config.state_dir = nowhere;
	is_int(snapshot_copy_open(&copy, &config, ID, NULL, WAIT_MS, &err), -1,
	    "nobody listens");
	is_int(err.code, ERR_UNAVAILABLE, "which may change");
	snapshot_copy_release(&copy);
	snapshot_copy_release(&copy);
}

/* ---- what is stored ---- */

#if __has_include(<zstd.h>) /* il-snapshot is built where that is */

#include "sandbox/snapshot/copy_head.h"
#include "sandbox/snapshot/s3_answer.h"

static struct copy_head head;
static struct copy_head found;

/* Of one with two parts and a note. */
static void
make(struct buf *text)
{
	head = (struct copy_head){ .size = (int64_t)COPY_PART + 1,
		.used_ms = 1790000000123,
		.note_len = 7 };
	memcpy(head.id, ID, sizeof(head.id));
	memcpy(head.note, "1 a\0\nb ", 7);
	copy_hash(head.hashes[0], "one", 3);
	copy_hash(head.hashes[1], "other", 5);
	copy_head_make(text, &head);
}

static void
test_head(void)
{
	auto_buf struct buf text = BUF_INIT(COPY_HEAD_MAX);
	auto_buf struct buf odd = BUF_INIT(COPY_HEAD_MAX + 9);
	int wrong = 0;

	make(&text);
	ok(copy_head_parse(&found, text.data, text.len, ID) &&
		memcmp(&found, &head, sizeof(head)) == 0,
	    "what was written is read");
	ok(!copy_head_parse(&found, text.data, text.len,
	       "01234567-89ab-4cde-8f01-23456789abce"),
	    "another file's");
	for (size_t len = 0; len < text.len; len++) {
		char *cut = malloc(len +
		    1); /* its end is seen by a sanitizer */

		memcpy(cut, text.data, len);
		cut = realloc(cut, len > 0 ? len : 1);
		wrong += copy_head_parse(&found, cut, len, ID);
		free(cut);
	}
	is_int(wrong, 0, "cut off anywhere");
	for (size_t i = 0; i < text.len; i++) {
		text.data[i] ^= 1;
		wrong += copy_head_parse(&found, text.data, text.len, ID);
		text.data[i] ^= 1;
	}
	is_int(wrong, 0, "with any byte changed");
	buf_add(&odd, text.data, text.len);
	buf_addc(&odd, 'x');
	ok(!copy_head_parse(&found, odd.data, odd.len, ID), "with one more");
}

/* Lines that no maker writes, each with the hash that belongs to it. */
static void
test_lines(void)
{
	static const char *const bad[] = { "inline-file 2 " ID " 0 1 0\n",
		"inline-file 1 " ID " -1 1 0\n", "inline-file 1 " ID " 0 1 1\n",
		"inline-file 1 " ID " 104857601 1 0\n",
		"inline-file 1 " ID " 00 1 0\n", "inline-file 1 " ID " 0 1\n",
		"inline-file 1 " ID " 0 1 0 0\n", "inline-file 1 " ID " 0 1 0",
		"inline-file 1 " ID " 0 -1 0\n", "inline-file 1  0 1 0\n",
		"inline-file 1 " ID " 0 9223372036854775807 0\n",
		"inline-file 1 " ID " 0 1 16641\n", "\n", "",
		"inline-file 1 " ID " 1 1 0\n" };
	auto_buf struct buf text = BUF_INIT(COPY_HEAD_MAX);
	unsigned char hash[COPY_HASH];
	int good = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		buf_reset(&text);
		buf_adds(&text, bad[i]);
		copy_hash(hash, buf_str(&text), text.len);
		buf_add(&text, hash, sizeof(hash));
		if (copy_head_parse(&found, text.data, text.len, ID)) {
			note("%s", bad[i]);
			good++;
		}
	}
	is_int(good, 0, "lines that nobody writes");
	buf_reset(&text);
	buf_adds(&text, "inline-file 1 " ID " 0 1 0\n");
	copy_hash(hash, buf_str(&text), text.len);
	buf_add(&text, hash, sizeof(hash));
	ok(copy_head_parse(&found, text.data, text.len, ID), "one of nothing");
}

/* ---- a list ---- */

struct listed {
	int count;
	int64_t seconds[8];
	char last[STORE_NAME_MAX];
};

static void
on_name(void *arg, const char *name, int64_t seconds)
{
	struct listed *listed = arg;

	if (listed->count < 8)
		listed->seconds[listed->count] = seconds;
	listed->count++;
	(void)snprintf(listed->last, sizeof(listed->last), "%s", name);
}

#define KEY(name) "<Key>p/files/" name "</Key>"
#define PUT(time) "<LastModified>" time "</LastModified>"
#define END "<IsTruncated>false</IsTruncated></ListBucketResult>"

static void
test_times(void)
{
	char next[S3_TOKEN_MAX];
	struct listed listed = { .count = 0 };
	static const char page[] = KEY(ID "/head")
	    PUT("2026-11-24T20:13:00.000Z") KEY(ID "/00")
		PUT("2026-11-24T20:13:0"
		    "1Z") KEY(ID "/01") KEY(ID "/02") PUT("x") KEY(ID "/03")
		    PUT("2026-13-24T20:13:00Z") KEY(ID "/04")
			PUT("2026-11-24T20:13") END;

	ok(s3_page(page, "p/", STORE_FILES, on_name, &listed, next), "a page");
	is_int(listed.count, 6, "all that there are");
	is_int(listed.seconds[0], 1795551180, "its own time");
	is_int(listed.seconds[1], 1795551181, "without a fraction");
	for (int i = 2; i < 6; i++)
		is_int(listed.seconds[i], 0, "no time is not known");
	ok(!s3_page(KEY(ID "/head"), "p/", STORE_FILES, on_name, &listed, next),
	    "half a page");
}

static void
test_names(void)
{
	static const char page[] = KEY(ID) KEY(ID "/") KEY(ID "/manifest")
	    KEY(ID "/000") KEY(ID "/00x") KEY(ID "/0") KEY(ID "/draft")
		KEY("head") KEY(ID "0/head") KEY("x/head") KEY(ID "/head/x")
		    KEY("") "<Key>files/" ID "/head</Key><Key>p/x/" ID
			    "/head</Key>" END;
	static const char good[] = KEY(ID "/24") END;
	char next[S3_TOKEN_MAX];
	struct listed listed = { .count = 0 };

	ok(s3_page(page, "p/", STORE_FILES, on_name, &listed, next), "a page");
	is_int(listed.count, 0, "names that are none of ours");
	ok(s3_page(good, "p/", STORE_FILES, on_name, &listed, next), "a page");
	is_str(listed.last, "files/" ID "/24", "and one that is");
}

static void
test_stored(void)
{
	test_head();
	test_lines();
	test_times();
	test_names();
}

#else

static void
test_stored(void)
{
	note("il-snapshot is built where libzstd is");
}

#endif

int
main(void)
{
	char path[300];
	struct err err;

	(void)snprintf(folder, sizeof(folder), "%s", tap_folder());
	(void)snprintf(path, sizeof(path), "%s/broker/api", folder);
	(void)fd_make_dirs(path, 0700, &err);
	(void)snprintf(path, sizeof(path), "%s/" SOCKET_SNAPSHOT_API, folder);
	listening = fd_listen_unix(path, SOCK_SEQPACKET, 0600, &err);
	test_ids();
	test_client();
	test_nobody();
	test_stored();
	return tap_done();
}
