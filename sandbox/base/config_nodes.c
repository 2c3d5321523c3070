/* SPDX-License-Identifier: MIT */
#include "config_nodes.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "text.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define ADDRESS_CHARS "0123456789abcdefABCDEF:."
#define PORT_MAX 65535

/* len bytes, which may be none, into a field of size bytes.  False: too long.
 */
static bool
copy(char *field, size_t size, const char *text, size_t len)
{
	if (len >= size)
		return false;
	memcpy(field, text, len);
	field[len] = '\0';
	return true;
}

static void
make_tag(struct node_entry *entry)
{
	uint64_t hash = text_hash(entry->name);

	(void)snprintf(entry->tag, sizeof(entry->tag), "%06" PRIx64,
	    (hash ^ hash >> 24 ^ hash >> 48) & 0xffffff);
}

/* ADDRESS, one of IPv6 in brackets; *at is moved behind it. */
static bool
read_address(const char **at, struct node_entry *entry)
{
	unsigned char bytes[16];
	bool six = **at == '[';
	size_t len;

	*at += six;
	len = strspn(*at, six ? ADDRESS_CHARS : "0123456789.");
	if (!copy(entry->address, sizeof(entry->address), *at, len) ||
	    inet_pton(six ? AF_INET6 : AF_INET, entry->address, bytes) != 1 ||
	    (six && (*at)[len] != ']'))
		return false;
	*at += len + six;
	return true;
}

/* :PORT, or nothing. */
static bool
read_port(const char **at, struct node_entry *entry)
{
	char port[6];
	size_t len;

	entry->port = NODES_PORT;
	if (**at != ':')
		return true;
	len = strspn(++*at, "0123456789");
	if (!copy(port, sizeof(port), *at, len))
		return false;
	entry->port = strtol(port, NULL, 10);
	*at += len;
	return entry->port >= 1 && entry->port <= PORT_MAX;
}

/* NAME=ADDRESS or NAME=ADDRESS:PORT; *at is moved behind it.  Why it is none,
 * or NULL. */
static const char *
read_entry(const char **at, struct node_entry *entry)
{
	size_t len = strspn(*at, NAME_CHARS);

	if (!copy(entry->name, sizeof(entry->name), *at, len) || len == 0 ||
	    (*at)[0] == '-' || (*at)[len] != '=')
		return "must be NAME=ADDRESS,NAME=ADDRESS:PORT,…, with names "
		       "as of IL_NODE";
	*at += len + 1;
	make_tag(entry);
	if (!read_address(at, entry))
		return "an address must be as 10.0.0.1 or [fd00::1]";
	if (!read_port(at, entry))
		return "a port must be from 1 to 65535";
	return **at == ',' || **at == '\0' ? NULL :
					     "a character that is not allowed";
}

bool
nodes_next(const char *text, size_t *pos, struct node_entry *entry)
{
	const char *at = text + *pos;

	if (*at == '\0' || read_entry(&at, entry) != NULL)
		return false;
	*pos = (size_t)(at - text) + (*at == ',');
	return true;
}

bool
nodes_find(const char *text, const char *tag, struct node_entry *entry)
{
	for (size_t pos = 0; nodes_next(text, &pos, entry);)
		if (strncmp(entry->tag, tag, NODES_TAG_LEN) == 0)
			return true;
	return false;
}

/* Two names that are one, or have one tag: ids would not tell them apart. */
static const char *
find_twins(const char *text)
{
	struct node_entry one;
	struct node_entry other;

	for (size_t pos = 0; nodes_next(text, &pos, &one);)
		for (size_t rest = pos; nodes_next(text, &rest, &other);)
			if (strcmp(one.tag, other.tag) == 0)
				return strcmp(one.name, other.name) == 0 ?
				    "a name is there twice" :
				    "two names have the same tag in ids: "
				    "give one of the hosts another name";
	return NULL;
}

const char *
nodes_check(const char *text)
{
	struct node_entry entry;
	size_t count = 0;

	for (const char *at = text;; at++) {
		const char *why = read_entry(&at, &entry);

		if (why != NULL)
			return why;
		if (++count > NODES_MAX)
			return "more than 128 nodes";
		if (*at == '\0')
			return find_twins(text);
	}
}

int
nodes_own(const char *text, const char *name, const char *key_file,
    struct node_entry *entry, struct err *err)
{
	size_t pos = 0;

	if (*text == '\0')
		return 0;
	while (nodes_next(text, &pos, entry))
		if (strcmp(entry->name, name) == 0)
			return *key_file != '\0' ?
			    1 :
			    err_set(err, ERR_CONFIG,
				"IL_NODES_KEY_FILE: must be set, where "
				"IL_NODES is");
	return err_set(err, ERR_CONFIG,
	    "IL_NODES: this host, %s (IL_NODE), is not in it", name);
}

void
nodes_mark(const struct node_entry *own, char *id)
{
	memcpy(id, own->tag, strlen(own->tag));
}
