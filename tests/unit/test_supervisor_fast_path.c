/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/fast_path.h"

#include "protocol/frame.h"
#include "tap.h"

static struct frame frame;
static struct supervisor k;

/* ---- requests ---- */

/* A fast head, but for one number. */
static void
start_head(enum frame_tag but, int64_t value)
{
	static const struct {
		enum frame_tag tag;
		int64_t value;
	} numbers[] = {
		{ TAG_OP, OP_RUN },
		{ TAG_PLAIN, 1 },
		{ TAG_MERGE, 1 },
		{ TAG_WALL_MS, 5000 },
		{ TAG_OUTPUT_MAX, 1000 },
		{ TAG_OUTPUT_MODE, OUTPUT_DRAIN },
		{ TAG_LIMIT_MEMORY, 1 },
		{ TAG_LIMIT_FILES, 2 },
		{ TAG_LIMIT_CPU, 3 },
		{ TAG_LIMIT_PROCESSES, 4 },
		{ TAG_COLLECT_FILES, 5 },
		{ TAG_COLLECT_BYTES, 6 },
		{ TAG_COLLECT_TOTAL, 7 },
		{ TAG_COLLECT_HOW, 8 },
		{ TAG_COLLECT_MS, 9 },
	};

	frame_start(&frame, FRAME_REQUEST);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		frame_add_int(&frame, numbers[i].tag,
		    numbers[i].tag == but ? value : numbers[i].value);
}

static void
end_head(void)
{
	frame_add_text(&frame, TAG_FOLDER, "/workspace");
	frame_add_text(&frame, TAG_ENV, "A=1");
}

static bool
read_head(void)
{
	k.reads = SUPERVISOR_READS_PLAIN;
	return fast_read_head(&k, frame.data, frame.len);
}

static bool
read_with(enum frame_tag tag, int64_t value)
{
	start_head(tag, value);
	end_head();
	return read_head();
}

static bool
read_env(const void *entry, size_t len)
{
	start_head(TAG_OP, OP_RUN);
	end_head();
	frame_add_bytes(&frame, TAG_ENV, entry, len);
	return read_head();
}

static bool
read_piece(enum frame_part part, const void *data, size_t len)
{
	frame_start(&frame, FRAME_BYTES);
	frame_add_int(&frame, TAG_PART, part);
	frame_add_bytes(&frame, TAG_DATA, data, len);
	return fast_read_piece(&k, frame.data, frame.len);
}

static bool
read_words(const void *words, size_t len)
{
	return read_with(TAG_OP, OP_RUN) && read_piece(PART_ARGS, words, len) &&
	    fast_is_whole(&k);
}

/* ---- tests ---- */

static void
test_head(void)
{
	ok(read_with(TAG_OP, OP_RUN), "a fast head");
	is_int(k.plan.wall_ms, 5000, "time");
	is_int(k.plan.output_max, 1000, "output");
	is_int(k.plan.drains, 1, "what happens at its limit");
	is_int(k.plan.folder, 1, "folder");
	is_int(k.plan.files, 5, "files");
	is_int(k.plan.bytes, 6, "bytes of each");
	is_int(k.plan.total, 7, "of all");
	is_int(k.plan.how, 8, "which");
	is_int(k.plan.ms, 9, "how long");
	is_int(k.plan.input + k.plan.notes, 0, "nothing in the file");
	is_int(k.limits[FAST_MEMORY], 1, "memory");
	is_int(k.limits[FAST_FILES], 2, "descriptors");
	is_int(k.limits[FAST_CPU], 3, "seconds");
	is_int(k.limits[FAST_PROCESSES], 4, "processes");
	ok(k.merge, "one stream");
	ok(read_with(TAG_MERGE, 0) && !k.merge, "two streams");
	ok(read_with(TAG_OUTPUT_MODE, OUTPUT_END) && k.plan.drains == 0,
	    "output ends it");
	ok(read_with(TAG_OUTPUT_MODE, 7) && k.plan.drains == 0, "no such mode");
}

static void
test_other_numbers(void)
{
	static const enum frame_tag signless[] = { TAG_OUTPUT_MAX,
		TAG_LIMIT_MEMORY, TAG_LIMIT_FILES, TAG_LIMIT_CPU,
		TAG_LIMIT_PROCESSES, TAG_COLLECT_FILES, TAG_COLLECT_BYTES,
		TAG_COLLECT_TOTAL, TAG_COLLECT_HOW, TAG_COLLECT_MS };

	ok(!read_with(TAG_OP, OP_BASH), "another operation");
	ok(!read_with(TAG_PLAIN, 0), "not `python ARGS`");
	ok(!read_with(TAG_WALL_MS, 0), "no time");
	ok(!read_with(TAG_WALL_MS, -1), "less than no time");
	ok(read_with(TAG_WALL_MS, LIMIT_WALL_MS), "a day");
	ok(!read_with(TAG_WALL_MS, LIMIT_WALL_MS + 1), "more than a day");
	for (size_t i = 0; i < sizeof(signless) / sizeof(signless[0]); i++) {
		ok(!read_with(signless[i], -1), "-1 of something");
		ok(!read_with(signless[i], INT64_MIN), "the least number");
		ok(read_with(signless[i], 0), "0 of something");
		ok(read_with(signless[i], INT64_MAX), "the largest number");
	}
}

static void
test_other_fields(void)
{
	start_head(TAG_OP, OP_RUN);
	frame_add_text(&frame, TAG_ENV, "A=1");
	ok(!read_head(), "without a folder");
	frame_add_text(&frame, TAG_FOLDER, "/home/");
	ok(!read_head(), "no folder of ours");
	start_head(TAG_OP, OP_RUN);
	frame_add_text(&frame, TAG_FOLDER, "/home");
	ok(!read_head(), "without an environment");
	frame_add_text(&frame, TAG_ENV, "A=1");
	ok(read_head() && k.plan.folder == 0, "the other folder");
	frame_add_text(&frame, TAG_CWD, "");
	ok(read_head(), "where a run starts anyway");
	start_head(TAG_OP, OP_RUN);
	end_head();
	frame_add_text(&frame, TAG_CWD, "x");
	ok(!read_head(), "it starts elsewhere");
	start_head(TAG_OP, OP_RUN);
	end_head();
	frame_add_text(&frame, (enum frame_tag)200, "");
	ok(!read_head(), "an unknown tag");
	start_head(TAG_OP, OP_RUN);
	end_head();
	frame_add_int(&frame, TAG_COUNT, 0);
	ok(!read_head(), "a tag of another operation");
	(void)read_with(TAG_OP, OP_RUN);
	ok(!fast_read_head(&k, frame.data, frame.len - 1),
	    "a head that is cut off");
	ok(!fast_read_head(&k, frame.data, 0), "nothing");
	frame.data[0] = FRAME_BYTES;
	ok(!read_head(), "another kind");
}

static void
test_environment(void)
{
	static const char all[] = "A=1\0B=\0C==\0";
	static char long_one[FRAME_MAX];
	size_t room;

	start_head(TAG_OP, OP_RUN);
	end_head();
	frame_add_text(&frame, TAG_ENV, "B=");
	frame_add_text(&frame, TAG_ENV, "C==");
	ok(read_head(), "an environment");
	is_mem(supervisor_fast.env, supervisor_fast.env_len, all,
	    sizeof(all) - 1, "its entries");
	ok(!read_env("X", 1), "no value");
	ok(!read_env("=1", 2), "no name");
	ok(!read_env("", 0), "nothing");
	ok(!read_env("A=1\0B", 5), "a NUL");
	memset(long_one, 'x', sizeof(long_one));
	long_one[1] = '=';
	start_head(TAG_OP, OP_RUN);
	end_head();
	room = FRAME_MAX - frame.len - 5;
	ok(read_env(long_one, room) && frame.len == FRAME_MAX,
	    "a packet that is full");
	is_int(supervisor_fast.env_len, 4 + room + 1, "all of it is there");
	ok(read_with(TAG_OP, OP_RUN) && supervisor_fast.env_len == 4,
	    "nothing of it is in the next");
}

static void
test_words(void)
{
	static char full[SUPERVISOR_WORDS_MAX + 1] = "-c";

	ok(read_words("-c\0x\0", 5), "code");
	is_mem(supervisor_fast.words, supervisor_fast.words_len, "-c\0x\0",
	    (size_t)5, "its words");
	ok(read_words("-c\0\0", 4), "no code");
	ok(read_words("-c\0x\0y\0", 7), "code and a word");
	ok(!read_words("-c\0x", 4), "no end");
	ok(!read_words("-c\0", 3), "nothing behind the option");
	ok(!read_words("-cx\0", 4), "code in the same word");
	ok(!read_words("-O\0x\0", 5), "another option");
	ok(!read_words("\0", 1), "an empty word");
	ok(!read_words("", 0), "no bytes");
	ok(read_with(TAG_OP, OP_RUN) && !fast_is_whole(&k), "no words");
	ok(read_piece(PART_ARGS, "-c\0", 3) && !read_piece(PART_ARGS, "x\0", 2),
	    "words in two pieces");
	(void)read_with(TAG_OP, OP_RUN);
	ok(read_piece(PART_ARGS, full, FRAME_MAX - 19), "as many as fit");
}

/* For these there is a process that is ready but for the code. */
static void
test_usual(void)
{
	ok(read_words("-c\0x\0", 5) && !supervisor_fast.usual,
	    "no environment is a usual one");
	k.usual[SUPERVISOR_COMMAND] = "A=1";
	k.usual_len[SUPERVISOR_COMMAND] = 4;
	ok(read_words("-c\0x\0", 5) &&
		supervisor_fast.usual == SUPERVISOR_COMMAND,
	    "code in the usual environment");
	ok(read_words("-c\0x\0y\0", 7) && !supervisor_fast.usual,
	    "not with a word behind it");
	ok(read_words("-c\0x\0\0", 6) && !supervisor_fast.usual,
	    "nor an empty one");
	ok(read_env("B=2", 3) && read_piece(PART_ARGS, "-c\0x\0", 5) &&
		fast_is_whole(&k) && !supervisor_fast.usual,
	    "nor with a variable more");
	k.usual[SUPERVISOR_COMMAND] = "A=2";
	ok(read_words("-c\0x\0", 5) && !supervisor_fast.usual,
	    "nor with another value");
	k.usual_len[SUPERVISOR_COMMAND] = 0;
}

static void
test_pieces(void)
{
	(void)read_with(TAG_OP, OP_RUN);
	ok(!read_piece(PART_SOURCE, "x", 1), "source");
	ok(!read_piece((enum frame_part)0, "x", 1), "no part");
	ok(read_piece(PART_STDIN, "in", 2), "standard input");
	is_mem(k.input, k.plan.input, "in", (size_t)2, "its bytes");
	ok(!read_piece(PART_STDIN, "in", 2), "more of it");
	ok(!fast_read_piece(&k, "", 0), "nothing");
	frame_start(&frame, FRAME_BYTES);
	frame_add_text(&frame, TAG_DATA, "x");
	ok(!fast_read_piece(&k, frame.data, frame.len), "for no part");
	frame_start(&frame, FRAME_BYTES);
	frame_add_int(&frame, TAG_PART, PART_ARGS);
	ok(!fast_read_piece(&k, frame.data, frame.len), "without data");
}

/* ---- a file ---- */

/* Buffers: later checks borrow from them. */
static struct frame head;
static struct frame file;

static bool
read_file(const char *name, size_t len, enum frame_tag tag, int64_t value)
{
	frame_start(&frame, FRAME_INPUT);
	frame_add_bytes(&frame, TAG_PATH, name, len);
	frame_add_int(&frame, tag, value);
	/* a second one is refused, and the first stays */
	if (fast_file.name != NULL)
		return fast_read_piece(&k, frame.data, frame.len);
	file = frame;
	return fast_read_piece(&k, file.data, file.len);
}

/* The head of one that runs the file at a path. */
static bool
read_shown(const char *path, size_t len, int64_t display)
{
	start_head(TAG_PLAIN, 0);
	end_head();
	frame_add_bytes(&frame, TAG_PATH, path, len);
	frame_add_text(&frame, TAG_ARG, "-x");
	frame_add_text(&frame, TAG_NAME, "<it>");
	frame_add_int(&frame, TAG_DISPLAY, display);
	head = frame;
	k.reads = SUPERVISOR_READS_PLAIN;
	return fast_read_head(&k, head.data, head.len);
}

static bool
read_path(const char *path, size_t len)
{
	return read_shown(path, len, 0);
}

static void
test_display(void)
{
	ok(read_shown("a.py", 4, 1) && supervisor_fast.display == 1,
	    "a program that shows pictures");
	ok(read_shown("a.py", 4, -1) && supervisor_fast.display == 1,
	    "what is not 0 is 1");
	ok(read_shown("a.py", 4, 0) && supervisor_fast.display == 0,
	    "one that shows none");
	(void)read_shown("a.py", 4, 1);
	ok(read_with(TAG_OP, OP_RUN) && supervisor_fast.display == 0,
	    "nothing of it is in the next");
}

static void
test_program(void)
{
	static const char text[] = "print(1)";

	ok(read_path("a.py", 4), "a program by its path");
	ok(supervisor_fast.by_path == 1, "it is said how");
	is_mem(supervisor_fast.words, supervisor_fast.words_len, "a.py\0-x",
	    (size_t)8, "its words");
	ok(!fast_is_whole(&k), "without the file it is none");
	ok(!read_piece(PART_ARGS, "-c\0x\0", 5), "its words are in the head");
	ok(!read_piece(PART_CONTENT, text, 8), "bytes of no file");
	ok(read_file("a.py", 4, TAG_MODE, 0755), "the file");
	is_int(fast_file.mode, 0755, "its mode");
	ok(!fast_file.dated, "of now");
	ok(read_piece(PART_CONTENT, text, 8), "its bytes");
	is_mem(fast_file.data, fast_file.len, text, (size_t)8, "all of them");
	ok(!read_piece(PART_CONTENT, text, 8), "more of them");
	ok(!read_file("b.py", 4, TAG_MODE, 0), "another file");
	ok(fast_is_whole(&k), "it is whole");
	is_mem(supervisor_fast.env + supervisor_fast.env_len,
	    supervisor_fast.title_len, "<it>", (size_t)4,
	    "what tracebacks call it is behind the environment");
	ok(fast_file.hidden, "it is not sent back");
	(void)read_path("a.py", 4);
	ok(read_file("b.py", 4, TAG_MTIME, 7) && fast_file.dated, "of a day");
	is_int(fast_file.mtime, 7, "which");
	ok(!fast_is_whole(&k), "but another than the program");
	(void)read_path("a.py", 4);
	ok(!read_file("a.py", 4, TAG_ALWAYS, 1), "one to send back always");
	ok(!read_path("a/b", 3) && !read_path("", 0) && !read_path("..", 2) &&
		!read_path("a\0b", 3),
	    "what is no name beside others");
	start_head(TAG_PLAIN, 0);
	end_head();
	frame_add_text(&frame, TAG_ARG, "-x");
	frame_add_text(&frame, TAG_PATH, "a.py");
	ok(!read_head(), "arguments before the program");
	start_head(TAG_PLAIN, 1);
	end_head();
	frame_add_text(&frame, TAG_PATH, "a.py");
	ok(!read_head(), "both a path and words");
}

/* Another environment than that of end_head() is none that is ready. */
static bool
read_main(const char *folder, const char *arg, const void *text, size_t len)
{
	static const char name[] = SUPERVISOR_MAIN;

	start_head(TAG_PLAIN, 0);
	frame_add_text(&frame, TAG_FOLDER, folder);
	frame_add_text(&frame, TAG_ENV, "A=1");
	frame_add_text(&frame, TAG_PATH, name);
	if (arg != NULL)
		frame_add_text(&frame, TAG_ARG, arg);
	head = frame;
	return fast_read_head(&k, head.data, head.len) &&
	    read_file(name, sizeof(name) - 1, TAG_MODE, 0644) &&
	    (len == 0 || read_piece(PART_CONTENT, text, len)) &&
	    fast_is_whole(&k);
}

static void
test_usual_program(void)
{
	static char longest[FRAME_MAX];
	static const char whole[] = SUPERVISOR_MAIN "\0print(1)";

	ok(read_main("/workspace", NULL, "x", 1) && !supervisor_fast.usual,
	    "no environment is one of a program's");
	k.usual[SUPERVISOR_PROGRAM] = "A=1";
	k.usual_len[SUPERVISOR_PROGRAM] = 4;
	ok(read_main("/workspace", NULL, "print(1)", 8) &&
		supervisor_fast.usual == SUPERVISOR_PROGRAM,
	    "a program in its environment");
	is_mem(supervisor_fast.words, supervisor_fast.words_len, whole,
	    sizeof(whole) - 1, "its source is behind its name");
	ok(read_main("/workspace", NULL, "", 0) &&
		supervisor_fast.usual == SUPERVISOR_PROGRAM &&
		supervisor_fast.words_len == sizeof(SUPERVISOR_MAIN),
	    "or none is");
	ok(read_main("/workspace", NULL, longest, FRAME_MAX - 19) &&
		supervisor_fast.words_len ==
		    sizeof(SUPERVISOR_MAIN) + FRAME_MAX - 19,
	    "as much as fits into a frame");
	ok(read_main("/home", NULL, "x", 1) && !supervisor_fast.usual,
	    "not in another folder");
	ok(read_main("/workspace", "y", "x", 1) && !supervisor_fast.usual,
	    "not with a word behind it");
	ok(read_main("/workspace", "", "x", 1) && !supervisor_fast.usual,
	    "nor an empty one");
	ok(read_path("a.py", 4) && read_file("a.py", 4, TAG_MODE, 0644) &&
		fast_is_whole(&k) && !supervisor_fast.usual,
	    "not by another name");
	k.usual[SUPERVISOR_PROGRAM] = "A=2";
	ok(read_main("/workspace", NULL, "x", 1) && !supervisor_fast.usual,
	    "nor with another value");
	ok(read_words("-c\0x\0", 5) && !supervisor_fast.usual,
	    "what a program's is for code is not");
	k.usual_len[SUPERVISOR_PROGRAM] = 0;
}

static bool
read_script(int64_t how, const void *words, size_t len)
{
	return read_with(TAG_COLLECT_HOW, how) &&
	    read_piece(PART_ARGS, words, len) &&
	    read_file("a.py", 4, TAG_MODE, 0644) && fast_is_whole(&k);
}

static void
test_script(void)
{
	ok(read_script(COLLECT_MTIME, "a.py\0-x", 8), "python FILE ...");
	ok(supervisor_fast.by_path == 0 && !fast_file.hidden,
	    "whose file may be sent back");
	ok(!read_script(COLLECT_BYTES, "a.py\0-x", 8),
	    "not where its bytes would tell");
	ok(!read_script(COLLECT_MTIME, "a.p\0-x", 7), "another file");
	ok(!read_script(COLLECT_MTIME, "a.pyc\0", 7), "a longer name");
	ok(!read_script(COLLECT_MTIME, "-c\0x", 5), "a command beside a file");
	ok(!read_script(COLLECT_MTIME, "a.py", 4), "words without an end");
}

/* ---- a person's request ---- */

static void
start_source(void)
{
	frame_start(&frame, FRAME_REQUEST);
	frame_add_int(&frame, TAG_OP, OP_RUN);
	frame_add_int(&frame, TAG_WALL_MS, 5000);
	frame_add_int(&frame, TAG_OUTPUT_MAX, 1000);
	frame_add_int(&frame, TAG_COLLECT_FILES, 5);
}

static bool
read_source(void)
{
	k.reads = SUPERVISOR_READS_SOURCE;
	return fast_read_head(&k, frame.data, frame.len);
}

static bool
read_name(const char *name, size_t len)
{
	start_source();
	frame_add_bytes(&frame, TAG_NAME, name, len);
	return read_source();
}

static void
test_source(void)
{
	static const enum frame_tag others[] = { TAG_PLAIN, TAG_LIMIT_MEMORY,
		TAG_COLLECT_HOW, TAG_OUTPUT_MODE, TAG_PATH, TAG_ARG, TAG_FOLDER,
		TAG_ENV, TAG_DISPLAY };
	char name[256];

	start_source();
	ok(!read_source(), "without a name");
	ok(read_name("main.py", 7), "a head");
	is_mem(supervisor_fast.env, supervisor_fast.env_len, "main.py",
	    (size_t)7, "its name");
	is_int(k.plan.folder, SUPERVISOR_WORKSPACE, "its folder");
	is_int(supervisor_fast.echo, 0, "it shows nothing");
	frame_add_int(&frame, TAG_ECHO, 1);
	frame_add_text(&frame, TAG_CWD, "");
	ok(read_source() && supervisor_fast.echo == 1,
	    "but where it is asked to");
	ok(!read_piece(PART_ARGS, "-c\0x\0", 5), "it takes no words");
	ok(!fast_is_whole(&k), "without source it is none");
	ok(read_piece(PART_SOURCE, "1\0", 2) && fast_is_whole(&k),
	    "with source it is whole");
	is_mem(supervisor_fast.words, supervisor_fast.words_len, "1\0",
	    (size_t)2, "all of it");
	ok(!read_piece(PART_SOURCE, "2", 1), "source in two pieces");
	memset(name, 'x', sizeof(name));
	ok(read_name(name, 255) && !read_name(name, 256), "a long name");
	ok(!read_name("", 0) && !read_name("..", 2) && !read_name("a/b", 3) &&
		!read_name("a\0b", 3),
	    "what is no file's name");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		(void)read_name("x", 1);
		frame_add_int(&frame, others[i], 1);
		ok(!read_source(), "a field of another request");
	}
}

int
main(void)
{
	test_source();
	test_head();
	test_other_numbers();
	test_other_fields();
	test_environment();
	test_words();
	test_usual();
	test_pieces();
	test_display();
	test_program();
	test_usual_program();
	test_script();
	return tap_done();
}
