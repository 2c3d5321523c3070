/* SPDX-License-Identifier: MIT */
#ifndef NODE_TABLE_H
#define NODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct config;
struct err;
struct node_table;

/*
 * The table of nodes, a small text file at IL_NODES that is the same on all of
 * them (inline.conf(5) has its form): which hosts there are, and whose are the
 * slots that people are in.  A slot without a line of its own belongs to the
 * node that rendezvous hashing chooses among those that are not joining.
 *
 * On one host there is no table, and NULL stands for it: every function here
 * takes it, and says that nothing is another node's.
 *
 * An id that a node gives out has its tag in it, six hex digits that its name
 * alone decides, so that each node knows whose an id is.
 */
#define NODES_MAX 1000
#define NODES_FILE_MAX (256 << 10)
#define NODES_NAME_MAX 63
#define NODES_HOST_MAX 253
#define NODES_ADDRESS_MAX (NODES_HOST_MAX + 8)
#define NODES_TAG_LEN 6
#define NODES_PORT 8079

/* The key of SipHash-2-4, for people's slots and for rendezvous hashing.  It is
 * no secret, and it never changes: everybody would be on another node. */
#define SLOT_KEY "inline-slot-hash"
#define SLOTS 1024

struct node_entry {
	char name[NODES_NAME_MAX + 1];	     /* as IL_NODE */
	char address[NODES_ADDRESS_MAX + 1]; /* HOST:PORT, [fd00::1]:8079 */
	char tag[NODES_TAG_LEN + 1];
	bool joining; /* it has the slots that lines give it, and no others */
};

/* The slot of a person, 0 to SLOTS - 1: the hash of the id, as 8 bytes in
 * little-endian order, modulo SLOTS. */
int slot_of(int64_t user_id);

/* Read the table of IL_NODES; *table: to be freed, or NULL where it is unset.
 * ERR_CONFIG: it cannot be read or is wrong, this host is not in it, or there
 * is no IL_NODES_KEY_FILE. */
int node_table_open(struct node_table **table, const struct config *config,
    struct err *err);
/* The same of a text, for a host of this name. */
int node_table_parse(struct node_table **table, const char *text, size_t len,
    const char *own, struct err *err);
void node_table_free(struct node_table *table);

static inline void
node_table_free_at(struct node_table **table)
{
	node_table_free(*table);
}

#define auto_node_table __attribute__((cleanup(node_table_free_at)))

/* Read the file again if it has changed and rests for a second.  The file
 * is looked at once in a second (now_ms: on the monotonic clock).  A table that
 * is wrong is logged, and the one of before stays.  Entries that were found
 * before may be gone afterwards. */
void node_table_refresh(struct node_table *table, int64_t now_ms);

/* This node; NULL on one host. */
const struct node_entry *node_table_own(const struct node_table *table);
/* When its file was written, as a word: no later table has the same. */
const char *node_table_version(const struct node_table *table);
/* The node that a slot belongs to; NULL on one host. */
const struct node_entry *node_table_owner(struct node_table *table, int slot);
/* The same where that is another node than this one; NULL: the slot is ours. */
const struct node_entry *node_table_other(struct node_table *table, int slot);
/* The node of a tag, the first digits of a text; of a name; NULL: none. */
const struct node_entry *node_table_tagged(const struct node_table *table,
    const char *tag);
const struct node_entry *node_table_named(const struct node_table *table,
    const char *name);
/* One after another, in the order of the file: node NULL asks for the first;
 * NULL: that was the last. */
const struct node_entry *node_table_next(const struct node_table *table,
    const struct node_entry *node);

/* Put our tag over the first characters of a new id; on one host it stays as it
 * is. */
void node_table_mark(const struct node_table *table, char *id);

/* Slots as people write them, "17,19,200-210".  Add these; false: they are
 * none.  Append them, and return how many they are. */
bool slots_read(const char *text, bool slots[SLOTS]);
size_t slots_add(struct buf *out, const bool slots[SLOTS]);

/* The table as it would be if a node took part in the hashing, or (joining) had
 * no slot any more; to be freed.  NULL: ERR_CONFIG, then a slot has no node. */
struct node_table *node_table_with(const struct node_table *table,
    const struct node_entry *node, bool joining, struct err *err);
/* Give slots to a node, as by a line. */
void node_table_give(struct node_table *table, const bool slots[SLOTS],
    const struct node_entry *node);
/* Append the text of a file that says the same. */
void node_table_print(const struct node_table *table, struct buf *out);

/*
 * Secret of all nodes, IL_NODES_KEY_FILE: 32 bytes, in hex.  Nothing is ever
 * sent or sealed with it itself, but with a key for each purpose that is
 * derived from it.
 */
#define NODE_KEY_LEN 32
/* Purpose: nginx knows another node's nginx by it. */
#define NODE_KEY_NGINX "nginx"
/* Purpose: il-api seals with it what LibreChat's clients keep for it. */
#define NODE_KEY_LIBRECHAT "librechat"

/* ERR_CONFIG: the file cannot be read, or is no key. */
int node_key_derive(const char *path, const char *purpose,
    unsigned char key[NODE_KEY_LEN], struct err *err);

#endif
