/* SPDX-License-Identifier: MIT */
/* IL_NODES: the list of hosts, and the tags that their names have in ids. */
#include "sandbox/base/config_nodes.h"

#include <stdio.h>

#include "sandbox/base/err.h"
#include "tap.h"

static void
test_walk(void)
{
	static const char text[] = "a=10.0.0.1,b-2=10.0.0.2:81,c=[fd00::3]:82,"
				   "d=[::1]";
	struct node_entry entry;
	struct node_entry found;
	size_t pos = 0;

	ok(nodes_check(text) == NULL, "a list of four");
	ok(nodes_next(text, &pos, &entry), "the first");
	is_str(entry.name, "a", "its name");
	is_str(entry.address, "10.0.0.1", "its address");
	is_int(entry.port, NODES_PORT, "its port");
	is_int((int)strspn(entry.tag, "0123456789abcdef"), NODES_TAG_LEN,
	    "its tag");
	ok(nodes_find(text, entry.tag, &found), "found by its tag");
	is_str(found.name, "a", "the same one");
	ok(nodes_next(text, &pos, &entry), "the second");
	is_str(entry.name, "b-2", "its name");
	is_int(entry.port, 81, "its port");
	ok(nodes_next(text, &pos, &entry), "the third");
	is_str(entry.address, "fd00::3", "its address, of IPv6");
	is_int(entry.port, 82, "its port");
	ok(nodes_next(text, &pos, &entry), "the fourth");
	is_int(entry.port, NODES_PORT, "its port");
	ok(!nodes_next(text, &pos, &entry), "no fifth");
	ok(!nodes_find(text, "zzzzzz", &entry), "no such tag");
	ok(!nodes_find("", "000000", &entry), "nor in no list");
}

static void
wrong(const char *text)
{
	ok(nodes_check(text) != NULL, text);
}

static void
test_check(void)
{
	wrong("a");
	wrong("a=");
	wrong("=10.0.0.1");
	wrong("a=10.0.0.1,");
	wrong(",a=10.0.0.1");
	wrong("-a=10.0.0.1");
	wrong("A=10.0.0.1");
	wrong("a=10.0.0.1:");
	wrong("a=10.0.0.1:0");
	wrong("a=10.0.0.1:65536");
	wrong("a=10.0.0.1:000080");
	wrong("a=10.0.0.256");
	wrong("a=10.0.0");
	wrong("a=fd00::1");
	wrong("a=[fd00::1");
	wrong("a=[fd00::g]");
	wrong("a=[10.0.0.1]");
	wrong("a=node.example.org");
	wrong("a=10.0.0.1;b=10.0.0.2");
	wrong("a=10.0.0.1,a=10.0.0.2");
	wrong("a=10.0.0.1 ,b=10.0.0.2");
	wrong("abcdefghijklmnopqrstuvwxyzabcdefg=10.0.0.1");
}

static void
test_many(void)
{
	char text[8192] = "";

	for (int i = 0; i < NODES_MAX + 1; i++)
		(void)snprintf(text + strlen(text), 32, "%sn%d=10.0.0.%d",
		    i > 0 ? "," : "", i, i);
	ok(nodes_check(text) != NULL, "129 are too many");
	*strrchr(text, ',') = '\0';
	ok(nodes_check(text) == NULL, "128 are not");
}

/* These two have one tag, of which an id could be either's. */
static void
test_twins(void)
{
	char text[128];
	char first[NODES_NAME_MAX + 1] = "";
	static char seen[1 << 24 >> 3];
	struct node_entry entry;
	unsigned long at = 0;
	int i = 0;

	/* By the birthday rule one comes soon. */
	for (; first[0] == '\0' && i < 100000; i++) {
		size_t pos = 0;

		(void)snprintf(text, sizeof(text), "n%d=10.0.0.1", i);
		(void)nodes_next(text, &pos, &entry);
		at = strtoul(entry.tag, NULL, 16);
		if ((seen[at >> 3] >> (at & 7) & 1) != 0)
			(void)snprintf(first, sizeof(first), "%s", entry.name);
		seen[at >> 3] = (char)(seen[at >> 3] | 1 << (at & 7));
	}
	for (i = 0;; i++) {
		size_t pos = 0;

		(void)snprintf(text, sizeof(text), "n%d=10.0.0.1,%s=10.0.0.2",
		    i, first);
		(void)nodes_next(text, &pos, &entry);
		if (strtoul(entry.tag, NULL, 16) == at)
			break;
	}
	is_str(nodes_check(text),
	    "two names have the same tag in ids: give one of the hosts "
	    "another name",
	    "two names with one tag");
}

static void
test_own(void)
{
	struct node_entry entry = { .port = 0 };
	struct err err = { 0 };
	char id[] = "0123456789";

	is_int(nodes_own("", "a", "", &entry, &err), 0, "one host");
	nodes_mark(&entry, id);
	is_str(id, "0123456789", "has ids of its own");
	is_int(nodes_own("a=10.0.0.1", "b", "/k", &entry, &err), -1,
	    "a host that is not among them");
	is_int(err.code, ERR_CONFIG, "is configured wrong");
	is_int(nodes_own("b=10.0.0.1", "b", "", &entry, &err), -1,
	    "so is one "
	    "without a "
	    "key");
	is_int(nodes_own("a=10.0.0.1,b=10.0.0.2", "b", "/k", &entry, &err), 1,
	    "one of two");
	is_str(entry.address, "10.0.0.2", "that one");
	nodes_mark(&entry, id);
	ok(strncmp(id, entry.tag, NODES_TAG_LEN) == 0 &&
		strcmp(id + NODES_TAG_LEN, "6789") == 0,
	    "its ids begin with its tag");
}

int
main(void)
{
	test_walk();
	test_check();
	test_many();
	test_twins();
	test_own();
	return tap_done();
}
