/* SPDX-License-Identifier: MIT */
#include "protocol/node_table.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"
#include "base/text.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define LABEL_MAX 63
#define LOOK_MS 1000
#define NO_NODE (-1)
#define KEY_FILE_MAX 4096
#define VERSION_SIZE 40 /* two numbers */

_Static_assert(sizeof(SLOT_KEY) - 1 == crypto_shorthash_KEYBYTES, "a key");

struct node_table {
	struct node_entry *nodes;
	size_t count;
	const struct node_entry *own;
	/* Indices of nodes.  NO_NODE: no line gives the slot; the owner is not
	 * found out yet. */
	int16_t given[SLOTS];
	int16_t owner[SLOTS];
	const struct config
	    *config;	  /* the one that names its file; NULL: no file */
	struct stat seen; /* of that file, all 0: it was not there */
	bool failed;	  /* that one was wrong, or not read */
	int64_t look_ms;  /* when to look next */
	char version[VERSION_SIZE];
};

/* ---- hashes ---- */

static uint64_t
node_hash(const void *bytes, size_t len)
{
	uint64_t value;

	_Static_assert(sizeof(value) == crypto_shorthash_BYTES, "a hash");
	(void)crypto_shorthash((unsigned char *)&value, bytes, len,
	    (const unsigned char *)SLOT_KEY);
	return le64toh(value);
}

int
slot_of(int64_t user_id)
{
	uint64_t bytes = htole64((uint64_t)user_id);

	return (int)(node_hash(&bytes, sizeof(bytes)) % SLOTS);
}

/* Weight of a node for a slot: the settled node of the highest weight has the
 * slot. */
static uint64_t
weigh(const struct node_entry *node, int slot)
{
	unsigned char bytes[2 + NODES_NAME_MAX];
	size_t len = strlen(node->name);

	bytes[0] = (unsigned char)(slot & 0xff);
	bytes[1] = (unsigned char)(slot >> 8);
	memcpy(bytes + 2, node->name, len);
	return node_hash(bytes, 2 + len);
}

static int16_t
find_highest(const struct node_table *table, int slot)
{
	uint64_t most = 0;
	int16_t best = NO_NODE;

	for (size_t i = 0; i < table->count; i++) {
		uint64_t weight = weigh(&table->nodes[i], slot);

		if (table->nodes[i].joining ||
		    (best != NO_NODE && weight <= most))
			continue;
		most = weight;
		best = (int16_t)i;
	}
	return best;
}

/* ---- slots as people write them ---- */

bool
slots_read(const char *text, bool slots[SLOTS])
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;

	for (char *part = strsep(&rest, ","); part != NULL;
	     part = strsep(&rest, ",")) {
		const char *first = strsep(&part, "-");
		int64_t from;
		int64_t to;

		if (!text_parse_int(first, 0, SLOTS - 1, &from) ||
		    !text_parse_int(part != NULL ? part : first, from,
			SLOTS - 1, &to))
			return false;
		while (from <= to)
			slots[from++] = true;
	}
	return true;
}

size_t
slots_add(struct buf *out, const bool slots[SLOTS])
{
	const char *comma = "";
	size_t count = 0;

	for (int i = 0; i < SLOTS; i++) {
		int first = i;

		if (!slots[i])
			continue;
		while (i + 1 < SLOTS && slots[i + 1])
			i++;
		buf_addf(out, first == i ? "%s%d" : "%s%d-%d", comma, first, i);
		count += (size_t)(i - first) + 1;
		comma = ",";
	}
	return count;
}

/* ---- a line ---- */

/* Labels with dots between them, as a host's name has. */
static bool
is_host_name(const char *text, size_t max)
{
	size_t len;

	if (strlen(text) > max)
		return false;
	for (;; text += len + 1) {
		len = strspn(text, NAME_CHARS);
		if (len == 0 || len > LABEL_MAX || *text == '-' ||
		    text[len - 1] == '-' ||
		    (text[len] != '.' && text[len] != '\0'))
			return false;
		if (text[len] == '\0')
			return true;
	}
}

/* HOST, which may be in brackets: a name or an address. */
static bool
is_host(char *host)
{
	unsigned char bytes[16];
	size_t len = strlen(host);
	bool good;

	if (*host == '[') {
		if (host[len - 1] != ']')
			return false;
		host[len - 1] = '\0';
		good = inet_pton(AF_INET6, host + 1, bytes) == 1;
		host[len - 1] = ']';
		return good;
	}
	return is_host_name(host, NODES_HOST_MAX) &&
	    (strspn(host, "0123456789.") < len ||
		inet_pton(AF_INET, host, bytes) == 1);
}

/* HOST or HOST:PORT.  Why it is none, or NULL. */
static const char *
read_address(struct node_entry *node, char *text)
{
	char *end = strrchr(text, ']');
	char *colon = strchr(end != NULL ? end : text, ':');
	int64_t port = NODES_PORT;

	if (colon != NULL) {
		*colon = '\0';
		if (!text_parse_int(colon + 1, 1, 65535, &port))
			return "a port is a number from 1 to 65535";
	}
	if (!is_host(text))
		return "a host is a DNS name of small letters, or an address "
		       "as 10.0.0.1 or [fd00::1]";
	(void)snprintf(node->address, sizeof(node->address), "%s:%" PRId64,
	    text, port);
	return NULL;
}

static const char *
check_twins(const struct node_table *table, const struct node_entry *node)
{
	const struct node_entry *twin = node_table_tagged(table, node->tag);

	if (twin == NULL)
		return NULL;
	return strcmp(twin->name, node->name) == 0 ?
	    "this name is there twice" :
	    "this name has the same tag in ids as another one: give the host "
	    "another name";
}

/* node NAME [HOST[:PORT]] [joining] */
static const char *
read_node(struct node_table *table, char *words[], size_t count)
{
	struct node_entry node = { .joining = count > 2 &&
		    strcmp(words[count - 1], "joining") == 0 };
	bool addressed = count > 2 && strcmp(words[2], "joining") != 0;
	char host[NODES_NAME_MAX + 1];
	const char *why;
	uint64_t hash;

	if (table->count == NODES_MAX)
		return "more than 1,000 nodes";
	if (count < 2 || !is_host_name(words[1], NODES_NAME_MAX))
		return "a name is 1 to 63 small letters, digits, '-' and '.', "
		       "as a host's";
	(void)snprintf(node.name, sizeof(node.name), "%s", words[1]);
	(void)snprintf(host, sizeof(host), "%s", words[1]);
	hash = text_hash(node.name);
	(void)snprintf(node.tag, sizeof(node.tag), "%06" PRIx64,
	    (hash ^ hash >> 24 ^ hash >> 48) & 0xffffff);
	why = read_address(&node, addressed ? words[2] : host);
	if (why == NULL && count > 2U + addressed + node.joining)
		why = "a node is `node NAME HOST:PORT joining`, of which the "
		      "last two may be left out";
	if (why == NULL)
		why = check_twins(table, &node);
	if (why == NULL)
		table->nodes[table->count++] = node;
	return why;
}

/* slots 17,19,200-210 NAME */
static const char *
read_slots(struct node_table *table, char *words[], size_t count)
{
	const struct node_entry *node;
	bool slots[SLOTS] = { false };

	if (count != 3)
		return "slots are given by `slots 17,200-210 NAME`";
	node = node_table_named(table, words[2]);
	if (node == NULL)
		return "no node has this name";
	if (!slots_read(words[1], slots))
		return "slots are numbers from 0 to 1023, as 17,200-210";
	for (int slot = 0; slot < SLOTS; slot++) {
		int16_t index = (int16_t)(node - table->nodes);

		if (!slots[slot])
			continue;
		if (table->given[slot] != NO_NODE &&
		    table->given[slot] != index)
			return "a slot is given to two nodes";
		table->given[slot] = index;
	}
	return NULL;
}

/* ---- a file ---- */

/* All lines for nodes or all for slots: a slot's node may come behind it. */
static int
read_lines(struct node_table *table, const char *text, bool slots,
    struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	char *words[5];
	int number = 0;
	size_t count;

	while ((count = text_next_words(&rest, &number, words, 5)) > 0) {
		const char *why = NULL;

		if (strcmp(words[0], slots ? "slots" : "node") == 0)
			why = slots ? read_slots(table, words, count) :
				      read_node(table, words, count);
		else if (strcmp(words[0], slots ? "node" : "slots") != 0)
			why = "a line begins with node, slots or #";
		if (why != NULL)
			return err_set(err, ERR_CONFIG, "line %d: %s", number,
			    why);
	}
	return 0;
}

/* Where all nodes are joining, lines have to give each slot. */
static int
check_holes(const struct node_table *table, struct err *err)
{
	for (size_t i = 0; i < table->count; i++)
		if (!table->nodes[i].joining)
			return 0;
	for (int slot = 0; slot < SLOTS; slot++)
		if (table->given[slot] == NO_NODE)
			return err_set(err, ERR_CONFIG,
			    "slot %d has no node, as all that are not given "
			    "slots by a line are joining",
			    slot);
	return 0;
}

int
node_table_parse(struct node_table **table, const char *text, size_t len,
    const char *own, struct err *err)
{
	struct node_table *new = xcalloc(1, sizeof(*new));

	new->nodes = xcalloc(NODES_MAX, sizeof(*new->nodes));
	for (int slot = 0; slot < SLOTS; slot++)
		new->given[slot] = new->owner[slot] = NO_NODE;
	if (strlen(text) != len) {
		(void)err_set(err, ERR_CONFIG, "a NUL byte");
	} else if (read_lines(new, text, false, err) == 0 &&
	    read_lines(new, text, true, err) == 0 &&
	    check_holes(new, err) == 0) {
		new->own = node_table_named(new, own);
		if (new->own != NULL) {
			*table = new;
			return 0;
		}
		(void)err_set(err, ERR_CONFIG,
		    "this host, %s (IL_NODE), is not in it", own);
	}
	node_table_free(new);
	return -1;
}

void
node_table_free(struct node_table *table)
{
	if (table == NULL)
		return;
	free(table->nodes);
	free(table);
}

static int
node_table_load(struct node_table **table, const struct config *config,
    const struct stat *seen, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(NODES_FILE_MAX);

	if (file_read(config->nodes, &text, err) != 0 ||
	    node_table_parse(table, buf_str(&text), text.len, config->node,
		err) != 0)
		return err_wrap(err, "IL_NODES");
	(*table)->config = config;
	(*table)->seen = *seen;
	(void)snprintf((*table)->version, VERSION_SIZE, "%" PRId64 ".%09ld",
	    (int64_t)seen->st_mtim.tv_sec, seen->st_mtim.tv_nsec);
	return 0;
}

int
node_table_open(struct node_table **table, const struct config *config,
    struct err *err)
{
	struct stat seen = { .st_ino = 0 };

	*table = NULL;
	if (*config->nodes == '\0')
		return 0;
	if (*config->nodes_key_file == '\0')
		return err_set(err, ERR_CONFIG,
		    "IL_NODES_KEY_FILE: must be set, where IL_NODES is");
	(void)stat(config->nodes, &seen);
	return node_table_load(table, config, &seen, err);
}

void
node_table_refresh(struct node_table *table, int64_t now_ms)
{
	struct node_table *new = NULL;
	struct stat seen;
	struct err err;
	int64_t age_s;
	bool same;

	if (table == NULL || table->config == NULL || now_ms < table->look_ms)
		return;
	table->look_ms = now_ms + LOOK_MS;
	if (stat(table->config->nodes, &seen) != 0)
		seen = (struct stat){ .st_ino = 0 };
	same = file_is_same(&seen, &table->seen);
	/* Half of a table that is being written in place may be a table. */
	age_s = clock_wall_ms() / 1000 - (int64_t)seen.st_mtim.tv_sec;
	if ((same && !table->failed) || age_s == 0 || age_s == 1)
		return;
	table->seen = seen;
	table->failed = node_table_load(&new, table->config, &seen, &err) !=
		0 ||
	    new == NULL;
	if (table->failed) {
		if (!same)
			log_err("%s; the table of before stays", err.text);
		return;
	}
	new->look_ms = table->look_ms;
	free(table->nodes);
	*table = *new;
	free(new);
	log_info("the table of nodes has changed nodes=%zu", table->count);
}

/* ---- questions ---- */

const struct node_entry *
node_table_own(const struct node_table *table)
{
	return table != NULL ? table->own : NULL;
}

const char *
node_table_version(const struct node_table *table)
{
	return table->version;
}

const struct node_entry *
node_table_owner(struct node_table *table, int slot)
{
	if (table == NULL)
		return NULL;
	if (table->owner[slot] == NO_NODE)
		table->owner[slot] = table->given[slot] != NO_NODE ?
		    table->given[slot] :
		    find_highest(table, slot);
	return &table->nodes[table->owner[slot]];
}

const struct node_entry *
node_table_other(struct node_table *table, int slot)
{
	const struct node_entry *owner = node_table_owner(table, slot);

	return owner != node_table_own(table) ? owner : NULL;
}

const struct node_entry *
node_table_tagged(const struct node_table *table, const char *tag)
{
	for (size_t i = 0; table != NULL && i < table->count; i++)
		if (strncmp(table->nodes[i].tag, tag, NODES_TAG_LEN) == 0)
			return &table->nodes[i];
	return NULL;
}

const struct node_entry *
node_table_named(const struct node_table *table, const char *name)
{
	for (size_t i = 0; table != NULL && i < table->count; i++)
		if (strcmp(table->nodes[i].name, name) == 0)
			return &table->nodes[i];
	return NULL;
}

const struct node_entry *
node_table_next(const struct node_table *table, const struct node_entry *node)
{
	size_t next = 0;

	if (table == NULL)
		return NULL;
	if (node != NULL)
		next = (size_t)(node - table->nodes) + 1;
	return next < table->count ? &table->nodes[next] : NULL;
}

void
node_table_mark(const struct node_table *table, char *id)
{
	const struct node_entry *own = node_table_own(table);

	if (own != NULL)
		memcpy(id, own->tag, NODES_TAG_LEN);
}

/* ---- another table ---- */

struct node_table *
node_table_with(const struct node_table *table, const struct node_entry *node,
    bool joining, struct err *err)
{
	struct node_table *new = xmalloc(sizeof(*new));
	ptrdiff_t index = node - table->nodes;

	*new = *table;
	new->nodes = xcalloc(NODES_MAX, sizeof(*new->nodes));
	memcpy(new->nodes, table->nodes, table->count * sizeof(*new->nodes));
	new->own = &new->nodes[table->own - table->nodes];
	new->nodes[index].joining = joining;
	for (int slot = 0; slot < SLOTS; slot++) {
		new->owner[slot] = NO_NODE;
		if (joining && new->given[slot] == index)
			new->given[slot] = NO_NODE;
	}
	if (check_holes(new, err) == 0)
		return new;
	node_table_free(new);
	return NULL;
}

void
node_table_give(struct node_table *table, const bool slots[SLOTS],
    const struct node_entry *node)
{
	for (int slot = 0; slot < SLOTS; slot++)
		if (slots[slot])
			table->given[slot] = table->owner[slot] =
			    (int16_t)(node - table->nodes);
}

void
node_table_print(const struct node_table *table, struct buf *out)
{
	for (size_t i = 0; i < table->count; i++)
		buf_addf(out, "node %s %s%s\n", table->nodes[i].name,
		    table->nodes[i].address,
		    table->nodes[i].joining ? " joining" : "");
	for (size_t i = 0; i < table->count; i++) {
		auto_buf struct buf list = BUF_INIT(NODES_FILE_MAX);
		bool slots[SLOTS];

		for (int slot = 0; slot < SLOTS; slot++)
			slots[slot] = table->given[slot] == (int16_t)i;
		if (slots_add(&list, slots) > 0)
			buf_addf(out, "slots %s %s\n", buf_str(&list),
			    table->nodes[i].name);
	}
}

/* ---- the key ---- */

int
node_key_derive(const char *path, const char *purpose,
    unsigned char key[NODE_KEY_LEN], struct err *err)
{
	auto_buf struct buf text = BUF_INIT(KEY_FILE_MAX);
	unsigned char secret[NODE_KEY_LEN];
	size_t len;

	if (file_read(path, &text, err) != 0) {
		err->code = ERR_CONFIG;
		return err_wrap(err, "IL_NODES_KEY_FILE");
	}
	len = strcspn(buf_str(&text), "\r\n");
	if (sodium_init() < 0 ||
	    !text_parse_hex(buf_str(&text), len, secret, sizeof(secret)))
		return err_set(err, ERR_CONFIG,
		    "IL_NODES_KEY_FILE: must hold 64 hex digits, as of "
		    "`openssl rand -hex 32`");
	(void)crypto_generichash(key, NODE_KEY_LEN,
	    (const unsigned char *)purpose, strlen(purpose), secret,
	    sizeof(secret));
	sodium_memzero(secret, sizeof(secret));
	sodium_memzero(text.data, text.len);
	return 0;
}
