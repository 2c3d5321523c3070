/* SPDX-License-Identifier: MIT */
/* The table of nodes: whose slot a person is in, and which node has it. */
#include "protocol/node_table.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"
#include "tap.h"

static struct node_table *
parse(const char *text, const char *own, struct err *err)
{
	struct node_table *table = NULL;

	return node_table_parse(&table, text, strlen(text), own, err) == 0 ?
	    table :
	    NULL;
}

/* A table without a fault. */
static struct node_table *
parsed(const char *text, const char *own)
{
	struct err err = { .text = "" };
	struct node_table *table = parse(text, own, &err);

	if (table == NULL) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return table;
}

static const char *
owner_of(struct node_table *table, int slot)
{
	return node_table_owner(table, slot)->name;
}

/* ---- slots and hashes never change ---- */

static void
test_slots_for_ever(void)
{
	static const struct {
		int64_t user;
		int slot;
	} known[] = {
		{ 0, 514 },
		{ 1, 377 },
		{ 2, 262 },
		{ INT64_C(80351110224678912), 750 },
		{ INT64_C(1209349574328733696), 919 },
		{ INT64_MAX, 433 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		is_int(slot_of(known[i].user), known[i].slot,
		    "a person's slot is the one of ever");
}

static void
test_owners_for_ever(void)
{
	static const struct {
		int slot;
		const char *owner;
	} known[] = { { 0, "inline-2" }, { 1, "inline-1" }, { 2, "inline-1" },
		{ 511, "inline-2" }, { 1023, "inline-2" } };
	struct node_table *table =
	    parsed("node inline-0\nnode inline-1\nnode inline-2\n", "inline-0");

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		is_str(owner_of(table, known[i].slot), known[i].owner,
		    "a slot's node is the one of ever");
	is_str(node_table_own(table)->tag, "8679dc", "so is a tag");
	node_table_free(table);
}

/* ---- owners of slots ---- */

static void
test_fourth_node(void)
{
	static const char three[] = "node inline-0\nnode inline-1\n"
				    "node inline-2\n";
	struct node_table *before = parsed(three, "inline-0");
	struct node_table *after = parsed(
	    "node inline-3\nnode inline-2\nnode inline-0\nnode inline-1\n",
	    "inline-0");
	int moved = 0;
	int elsewhere = 0;

	for (int slot = 0; slot < SLOTS; slot++)
		if (strcmp(owner_of(after, slot), "inline-3") == 0)
			moved++;
		else if (strcmp(owner_of(after, slot),
			     owner_of(before, slot)) != 0)
			elsewhere++;
	ok(moved > SLOTS / 5 && moved < 3 * SLOTS / 10,
	    "a fourth node gets about a quarter");
	is_int(elsewhere, 0, "and no slot moves between the three");
	node_table_free(before);
	node_table_free(after);
}

static void
test_joining(void)
{
	struct node_table *table = parsed("# the fourth one\n"
					  "node a\nnode b joining\n"
					  "node c [::1]:80 joining\n"
					  "slots 0,5-7 b\nslots 5 b\n",
	    "a");
	struct node_table *all = parsed("slots 0-1023 a\nnode a joining\n",
	    "a");
	int given = 0;

	for (int slot = 0; slot < SLOTS; slot++)
		given += strcmp(owner_of(table, slot), "b") == 0;
	is_int(given, 4, "a joining node has the slots of its lines");
	is_str(owner_of(table, 0), "b", "the first");
	is_str(owner_of(table, 4), "a", "not the one before a range");
	is_str(owner_of(table, 7), "b", "and the last of the range");
	is_str(node_table_other(table, 7)->name, "b", "which is another's");
	ok(node_table_other(table, 8) == NULL, "its own is no other's");
	is_str(owner_of(all, 9), "a", "all of them may be given by lines");
	node_table_free(table);
	node_table_free(all);
}

/* Each slot has the same owner in both. */
static bool
same_owners(struct node_table *one, struct node_table *other)
{
	for (int slot = 0; slot < SLOTS; slot++)
		if (strcmp(owner_of(one, slot), owner_of(other, slot)) != 0)
			return false;
	return true;
}

static void
test_changes(void)
{
	static const char text[] = "# of ours\nnode a\n"
				   "node b 10.0.0.2:81 joining\n"
				   "slots 7,9-10 b\nslots 9 b\nslots 11 a\n";
	struct node_table *table = parsed(text, "a");
	const struct node_entry *a = node_table_named(table, "a");
	const struct node_entry *b = node_table_named(table, "b");
	bool slots[SLOTS] = { [10] = true, [12] = true };
	auto_buf struct buf out = BUF_INIT(NODES_FILE_MAX);
	struct node_table *joined = parsed("node a\nnode b\n"
					   "slots 7,9-10 b\nslots 11 a",
	    "a");
	struct node_table *new;
	struct err err;

	(void)owner_of(table, 12); /* hashing needs no line */
	new = node_table_with(table, b, false, &err);
	ok(same_owners(new, joined), "a node takes part");
	node_table_free(new);
	new = node_table_with(table, b, true, &err);
	is_str(owner_of(new, 7), "a", "it has no slot any more");
	node_table_free(new);
	ok(node_table_with(table, a, true, &err) == NULL,
	    "the last one cannot go");
	is_str(owner_of(table, 7), "b", "the table stays as it is");
	node_table_give(table, slots, a);
	is_str(owner_of(table, 10), "a", "slots are given");
	node_table_print(table, &out);
	is_str(buf_str(&out),
	    "node a a:8079\nnode b 10.0.0.2:81 joining\n"
	    "slots 10-12 a\nslots 7,9 b\n",
	    "its text");
	new = parsed(buf_str(&out), "a");
	ok(same_owners(new, table), "says the same");
	node_table_free(new);
	node_table_free(joined);
	node_table_free(table);
}

static void
test_entries(void)
{
	struct node_table *table = parsed("\n \t# by hand\r\n"
					  "node a 10.0.0.1\r\n"
					  "node b-2.net 10.0.0.2:81\n"
					  "  node\tc  [fd00::3]:82 \n"
					  "node d inline-3.inline.svc:65535 "
					  "joining\n"
					  "node e.example.org",
	    "b-2.net");
	static const char *const addresses[] = { "10.0.0.1:8079", "10.0.0.2:81",
		"[fd00::3]:82", "inline-3.inline.svc:65535",
		"e.example.org:8079" };
	const struct node_entry *node = NULL;
	char id[] = "0123456789";

	for (size_t i = 0; i < 5; i++) {
		node = node_table_next(table, node);
		is_str(node->address, addresses[i], "an address");
		is_int((int)strspn(node->tag, "0123456789abcdef"),
		    NODES_TAG_LEN, "and a tag");
		ok(node_table_tagged(table, node->tag) == node &&
			node_table_named(table, node->name) == node,
		    "by which it is found");
	}
	ok(node_table_next(table, node) == NULL, "there is no sixth");
	ok(node_table_tagged(table, "zzzzzz") == NULL, "nor such a tag");
	ok(node_table_named(table, "b") == NULL, "nor such a name");
	node_table_mark(table, id);
	ok(strncmp(id, node_table_own(table)->tag, NODES_TAG_LEN) == 0 &&
		strcmp(id + NODES_TAG_LEN, "6789") == 0,
	    "its ids begin with its tag");
	node_table_free(table);
}

static void
test_one_host(void)
{
	struct config config = { .nodes = (char[]){ "" } };
	struct node_table *table = NULL;
	struct err err;
	char id[] = "0123456789";

	is_int(node_table_open(&table, &config, &err), 0, "one host");
	ok(table == NULL, "has no table");
	node_table_refresh(table, 1000);
	ok(node_table_own(table) == NULL && node_table_owner(table, 1) == NULL,
	    "no node");
	ok(node_table_other(table, 1) == NULL &&
		node_table_tagged(table, "000000") == NULL &&
		node_table_named(table, "a") == NULL &&
		node_table_next(table, NULL) == NULL,
	    "and no other");
	node_table_mark(table, id);
	is_str(id, "0123456789", "its ids name none");
	node_table_free(table);
}

/* ---- refusals ---- */

static void
wrong(const char *text, const char *why)
{
	struct err err = { .text = "" };
	struct node_table *table = parse(text, "a", &err);

	is_str(table == NULL ? err.text : "it was taken", why, why);
	node_table_free(table);
}

static void
test_refusals(void)
{
	static const char name[] = "line 2: a name is 1 to 63 small letters, "
				   "digits, '-' and '.', as a host's";
	static const char host[] = "line 1: a host is a DNS name of small "
				   "letters, or an address as 10.0.0.1 or "
				   "[fd00::1]";
	static const char port[] = "line 1: a port is a number from 1 to 65535";
	static const char form[] = "line 1: a node is `node NAME HOST:PORT "
				   "joining`, of which the last two may be "
				   "left out";
	static const char slots[] = "line 2: slots are numbers from 0 to 1023, "
				    "as 17,200-210";
	static const char *const names[] = { "", " -a", " a-", " A", " a_b",
		" a..b", " .a", " a.", " a\xc3\xa4", " a\x01" };
	static const char *const hosts[] = { "10.0.0.256", "10.0.0", "1",
		"[fd00::g]", "[10.0.0.1]", "[]", "[", "]", "h.", "-h", "H",
		"[::1]x", "h;h", "$h", "@h", "h/h" };
	static const char *const ports[] = { "h:", "h:0", "h:65536", "h:x",
		"h:1:2", "fd00::1", "[fd00::1", "[::1]:", "h:-1" };
	static const char *const lists[] = { "1024", "-1", "1-", "7-6", "1,,2",
		"1,", ",1", "x", "1-2-3", "0x1" };
	char text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(text, sizeof(text), "node a\nnode%s", names[i]);
		wrong(text, name);
	}
	(void)snprintf(text, sizeof(text), "node a\nnode %064d", 0);
	wrong(text, name);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		(void)snprintf(text, sizeof(text), "node a %s", hosts[i]);
		wrong(text, host);
	}
	(void)snprintf(text, sizeof(text), "node a b.%064d", 0);
	wrong(text, host);
	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		(void)snprintf(text, sizeof(text), "node a %s", ports[i]);
		wrong(text, port);
	}
	wrong("node a b leaving", form);
	wrong("node a joining joining", form);
	wrong("node a b joining c", form);
	wrong("node 1", host);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		(void)snprintf(text, sizeof(text), "node a\nslots %s a",
		    lists[i]);
		wrong(text, slots);
	}
	wrong("node a\nslots 1",
	    "line 2: slots are given by `slots 17,200-210 "
	    "NAME`");
	wrong("node a\nslots 1 a b",
	    "line 2: slots are given by `slots 17,200-210 NAME`");
	wrong("slots 1 b\nnode a", "line 1: no node has this name");
	wrong("slots 1 b\nslots 0-9 a\nnode a\nnode b",
	    "line 2: a slot is given to two nodes");
	wrong("node a\nnode b\nnode a", "line 3: this name is there twice");
	wrong("node a\nNode b", "line 2: a line begins with node, slots or #");
	wrong("a=10.0.0.1", "line 1: a line begins with node, slots or #");
	wrong("node b", "this host, a (IL_NODE), is not in it");
	wrong("node a joining\nslots 0-16,18-1023 a",
	    "slot 17 has no node, as all that are not given slots by a line "
	    "are joining");
	wrong("",
	    "slot 0 has no node, as all that are not given slots by a "
	    "line are joining");
}

static void
test_nul(void)
{
	static const char text[] = "node a\n\0node b\n";
	struct node_table *table = NULL;
	struct err err = { .text = "" };

	is_int(node_table_parse(&table, text, sizeof(text) - 1, "a", &err), -1,
	    "a NUL is refused");
	is_str(err.text, "a NUL byte", "in words");
}

/* The names that a StatefulSet gives, as many as there may be. */
static void
test_many(void)
{
	auto_buf struct buf text = BUF_INIT(NODES_FILE_MAX);
	struct node_table *table = NULL;
	const struct node_entry *node = NULL;
	struct err err = { .text = "" };
	int count = 0;
	int most = 0;
	int of[NODES_MAX] = { 0 };

	for (int i = 0; i < NODES_MAX; i++)
		buf_addf(&text,
		    "node inline-%d inline-%d.inline.namespace.svc\n", i, i);
	table = parsed(buf_str(&text), "inline-999");
	ok(table != NULL, "inline-0 to inline-999 have tags of their own");
	while ((node = node_table_next(table, node)) != NULL)
		count++;
	is_int(count, NODES_MAX, "1,000 nodes");
	for (int slot = 0; slot < SLOTS; slot++) {
		int owner = atoi(node_table_owner(table, slot)->name + 7);

		of[owner]++;
		if (of[owner] > most)
			most = of[owner];
	}
	ok(most < 10, "no node has many more than its slot");
	node_table_free(table);
	buf_adds(&text, "node inline-1000\n");
	ok(parse(buf_str(&text), "inline-0", &err) == NULL,
	    "1,001 are refused");
	is_str(err.text, "line 1001: more than 1,000 nodes", "in words");
}

/* Of these two an id could be either's. */
static void
test_twins(void)
{
	static int first[1 << 24];
	auto_buf struct buf text = BUF_INIT(256);
	int i = 0;
	int twin = 0;

	/* By the birthday rule two come soon. */
	for (; twin == 0 && i < 100000; i++) {
		struct node_table *table;
		unsigned long tag;

		buf_reset(&text);
		buf_addf(&text, "node n%d", i);
		table = parsed(buf_str(&text), buf_str(&text) + 5);
		tag = strtoul(node_table_own(table)->tag, NULL, 16);
		twin = first[tag];
		first[tag] = i;
		node_table_free(table);
	}
	buf_reset(&text);
	buf_addf(&text, "node n%d\nnode a\nnode n%d", i - 1, twin);
	wrong(buf_str(&text),
	    "line 3: this name has the same tag in ids as another one: give "
	    "the host another name");
}

/* ---- the file ---- */

static char path[128];

static void
put(const char *text)
{
	static time_t later = 1000000000;
	struct timeval times[2] = { { .tv_sec = later }, { .tv_sec = later } };
	struct err err;

	later++;
	if (file_write(path, text, strlen(text), false, &err) != 0 ||
	    utimes(path, times) != 0) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
}

static int
count_after(struct node_table *table, int64_t ms)
{
	static int64_t now;
	const struct node_entry *node = NULL;
	int count = 0;

	now += ms;
	node_table_refresh(table, now);
	while ((node = node_table_next(table, node)) != NULL)
		count++;
	return count;
}

/* A fault is logged once, also where the table is read again. */
static void
test_logged_once(struct node_table *table)
{
	auto_free char *log = xprintf("%s.log", path);
	auto_buf struct buf text = BUF_INIT(4096);
	int kept = dup(STDERR_FILENO);
	const char *line;
	int lines = 0;
	struct err err;

	(void)fflush(stderr);
	(void)!freopen(log, "w", stderr);
	put("node a\nnode a\n");
	(void)count_after(table, 1000);
	(void)count_after(table, 1000);
	(void)count_after(table, 1000);
	(void)fflush(stderr);
	(void)dup2(kept, STDERR_FILENO);
	(void)close(kept);
	(void)file_read(log, &text, &err);
	for (line = buf_str(&text); (line = strchr(line, '\n')) != NULL; line++)
		lines++;
	is_int(lines, 1, "it is logged once");
}

/* The cause that keeps it from being read may pass, and nothing of the file
 * tells. */
static void
test_unread(struct node_table *table)
{
	struct rlimit limit;
	struct rlimit none;

	put("node a\nnode b\nnode c\n");
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	(void)setrlimit(RLIMIT_NOFILE, &none);
	is_int(count_after(table, 1000), 1, "what cannot be opened");
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	is_int(count_after(table, 1000), 3, "is read when it can be");
}

/* In place, as an editor or cp does. */
static void
overwrite(const char *text, const struct timeval *times)
{
	struct stat before;
	struct stat after;
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	(void)stat(path, &before);
	do { /* a file system's clock has ticks */
		(void)!pwrite(fd, text, strlen(text), 0);
		(void)utimes(path, times);
		(void)stat(path, &after);
	} while (before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
	    before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
}

static void
test_in_place(struct node_table *table)
{
	struct timeval times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	put("node a\n####\n\n");
	is_int(count_after(table, 1000), 1, "a table");
	overwrite("node a\nnode b", NULL);
	is_int(count_after(table, 1000), 1, "is not read while it is written");
	overwrite("node a\nnode b", times);
	is_int(count_after(table, 1000), 2, "and is afterwards");
	overwrite("node a\n#####b", times);
	is_int(count_after(table, 1000), 1,
	    "one of the same size and time, too");
}

static void
test_file(void)
{
	struct config config = { .nodes = path,
		.node = (char[]){ "a" },
		.nodes_key_file = (char[]){ "" } };
	struct node_table *table = NULL;
	struct err err = { .text = "" };

	(void)snprintf(path, sizeof(path), "%s/table", tap_folder());
	put("node a\n");
	is_int(node_table_open(&table, &config, &err), -1, "without a key");
	is_str(err.text, "IL_NODES_KEY_FILE: must be set, where IL_NODES is",
	    "it is refused in words");
	config.nodes_key_file = path;
	put("node b\n");
	is_int(node_table_open(&table, &config, &err), -1, "one of others");
	is_int(err.code, ERR_CONFIG, "is configured wrong");
	is_str(err.text, "IL_NODES: this host, a (IL_NODE), is not in it",
	    "in words");
	put("node a\nnode b\n");
	is_int(node_table_open(&table, &config, &err), 0, "one of two");
	is_int(count_after(table, 1000), 2, "stays as it is");
	put("node a\nnode b\nnode c\n");
	is_int(count_after(table, 999), 2, "is looked at once in a second");
	is_int(count_after(table, 1), 3, "and read again when it has changed");
	put("node a\n");
	is_int(count_after(table, 999), 3, "not within a second of that");
	put("node a\nnode b\nnode c\nnode d\nnode d\n");
	is_int(count_after(table, 1000), 3, "not while it is wrong");
	test_logged_once(table);
	put("node b\n");
	is_int(count_after(table, 1000), 3, "nor without this host");
	(void)unlink(path);
	is_int(count_after(table, 1000), 3, "nor when it is away");
	put("node a\n");
	is_int(count_after(table, 1000), 1, "and again when it is right");
	is_str(node_table_own(table)->name, "a", "and this host is found");
	test_unread(table);
	test_in_place(table);
	node_table_free(table);
}

static void
test_too_large(void)
{
	auto_buf struct buf text = BUF_INIT(2 * NODES_FILE_MAX);
	struct config config = {
		.nodes = path, .node = (char[]){ "a" }, .nodes_key_file = path
	};
	struct node_table *table = NULL;
	struct err err = { .text = "" };

	buf_adds(&text, "node a\n#");
	while (text.len < NODES_FILE_MAX)
		buf_addc(&text, '#');
	put(buf_str(&text));
	is_int(node_table_open(&table, &config, &err), 0, "256 KiB are taken");
	node_table_free(table);
	buf_addc(&text, '#');
	put(buf_str(&text));
	is_int(node_table_open(&table, &config, &err), -1,
	    "a byte more is not");
	ok(strstr(err.text, "over 262144 bytes") != NULL, "in words");
}

int
main(void)
{
	test_slots_for_ever();
	test_owners_for_ever();
	test_fourth_node();
	test_joining();
	test_changes();
	test_entries();
	test_one_host();
	test_refusals();
	test_nul();
	test_many();
	test_twins();
	test_file();
	test_too_large();
	return tap_done();
}
